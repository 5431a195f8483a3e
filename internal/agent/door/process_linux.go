package door

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"slowpath/internal/agent/apart"
)

// Command is that of slowpath which runs a door. It is for Run alone.
const Command = "serve-door"

// Descriptors that the process has from its begin.
const (
	listenerFD = 3
	controlFD  = 4
)

// told is what the process reads from its standard input, which then stays open until it is to end.
type told struct {
	Incidents   string
	Certificate [][]byte `json:",omitempty"` // of the page, as DER
	Key         []byte   `json:",omitempty"` // PKCS #8
}

// goMemory is what its runtime keeps to.
const goMemory = "GOMEMLIMIT=24MiB"

// Inside is where an agent takes the connections of its door.
type Inside struct{ control *net.UnixConn }

// Outside is the other end of Inside, and what else its process needs.
type Outside struct {
	files []*os.File // the listener and the control socket
	told  told
}

// New makes both ends for a listener, which it closes here: it is the door's.
func New(l *net.TCPListener, incidents string, certificate *tls.Config) (*Inside, *Outside, error) {
	defer l.Close()
	out := &Outside{told: told{Incidents: incidents}}
	if certificate != nil {
		var err error
		out.told.Certificate = certificate.Certificates[0].Certificate
		if out.told.Key, err = x509.MarshalPKCS8PrivateKey(certificate.Certificates[0].PrivateKey); err != nil {
			return nil, nil, err
		}
	}
	listener, err := l.File()
	if err != nil {
		return nil, nil, err
	}
	ours, theirs, err := pair()
	if err != nil {
		listener.Close()
		return nil, nil, err
	}
	out.files = []*os.File{listener, theirs}
	control, err := connOf(ours)
	if err != nil {
		out.close()
		return nil, nil, err
	}
	return &Inside{control}, out, nil
}

func (o *Outside) close() {
	for _, f := range o.files {
		f.Close()
	}
}

// Run runs the process of the door until the context ends. Its lines go to a log; started is told its process id.
func (o *Outside) Run(ctx context.Context, log io.Writer, started func(pid int)) error {
	defer o.close()
	in, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { hold.Close() })() // closing it twice does no harm
	defer hold.Close()
	text, err := json.Marshal(o.told)
	if err != nil {
		return err
	}
	go hold.Write(text) // a chain of certificates may have no room in the pipe until it is read
	c := exec.Command(apart.Executable(), Command)
	c.Args[0] = "slowpath"
	c.Stdin, c.Stderr, c.ExtraFiles = in, log, o.files
	c.Env = apart.Environment("GOMAXPROCS=1", goMemory)
	err = apart.Run(c, apart.Limits{Memory: maxMemory}, started)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the process of the page has ended: %w", errors.Join(err, io.ErrUnexpectedEOF))
}

// Main is that process. quiet is called when it waits for its first request.
func Main(stdin io.Reader, log io.Writer, quiet func()) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // of a service as a whole: the agent ends it
	var t told
	read := json.NewDecoder(stdin)
	if err := read.Decode(&t); err != nil {
		return fmt.Errorf("%s is started by slowpath serve alone: %w", Command, err)
	}
	l, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return err
	}
	control, err := connOf(os.NewFile(controlFD, "control"))
	if err != nil {
		return err
	}
	o := Options{Incidents: t.Incidents, Log: log, Dial: func(context.Context, string, string) (net.Conn, error) {
		return dial(control)
	}}
	if t.Key != nil {
		key, err := x509.ParsePKCS8PrivateKey(t.Key)
		if err != nil {
			return err
		}
		o.TLS = &tls.Config{
			Certificates: []tls.Certificate{{Certificate: t.Certificate, PrivateKey: key}},
			MinVersion:   tls.VersionTLS12,
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	quiet()
	return Serve(ctx, l, o)
}

// pair are two ends of a connection.
func pair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "agent"), os.NewFile(uintptr(fds[1]), "door"), nil
}

// connOf is a file as a connection; the file is closed.
func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UnixConn); ok {
		return u, nil
	}
	c.Close()
	return nil, errors.New("it is no unix socket")
}

// dial makes a connection, and hands one end of it to the agent.
func dial(control *net.UnixConn) (net.Conn, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if _, _, err := control.WriteMsgUnix([]byte{1}, unix.UnixRights(int(theirs.Fd())), nil); err != nil {
		ours.Close()
		return nil, err
	}
	return connOf(ours)
}

// Accept gives the next connection of the door. It implements net.Listener.
func (i *Inside) Accept() (net.Conn, error) {
	for {
		one, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
		n, m, _, _, err := i.control.ReadMsgUnix(one, rights)
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(rights[:m])
		if err != nil || len(messages) != 1 {
			continue // this is none: the door says nothing else
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			continue
		}
		var c *net.UnixConn
		for _, fd := range fds { // one
			if c != nil {
				c.Close()
			}
			c, err = connOf(os.NewFile(uintptr(fd), "door"))
		}
		if err == nil && c != nil {
			return c, nil
		}
	}
}

// Close implements net.Listener.
func (i *Inside) Close() error { return i.control.Close() }

// Addr implements net.Listener.
func (i *Inside) Addr() net.Addr { return i.control.LocalAddr() }
