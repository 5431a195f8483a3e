package target

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is the byte stream to a target: net.Conn over the socket, with TLS on top if wanted. As for any net.Conn, its
// methods may be called from several goroutines; what ReadDelay says belongs to the Read that returned last.
type Conn struct {
	net.Conn // the wire, or TLS over it
	wire     *wire
	seam     *seam  // TLS only: between the stream and the wire
	target   Target // for its errors

	mu    sync.Mutex
	early []byte // TLS only: read by a failed Write, for the next Read
}

// wire is the socket. Reads go through recvmsg where the system gives the arrival time with them.
type wire struct {
	net.Conn
	raw      syscall.RawConn
	receiver receiver // state of one Read, kept so that reading allocates nothing

	arrival atomic.Int64 // ns since 1970, CLOCK_REALTIME; 0 is unknown
	delay   atomic.Int64 // ns between arrival and the return of recvmsg
}

// seam is the net.Conn below a TLS stream, so that Detach can replace it.
type seam struct{ net.Conn }

// newConn takes over an open socket, *net.TCPConn or *net.UnixConn, or a stream of WithDial.
func newConn(t Target, socket net.Conn) (*Conn, error) {
	sys, ok := socket.(syscall.Conn)
	if !ok {
		w := &wire{Conn: socket, raw: noSocket{}}
		return &Conn{Conn: w, wire: w, target: t}, nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return nil, newError(t, nil, err.Error(), "", err)
	}
	if tcp, ok := socket.(*net.TCPConn); ok {
		// Go's default, but explicit: with Nagle's algorithm the measured times would be those of the client.
		if err := tcp.SetNoDelay(true); err != nil {
			return nil, newError(t, nil, err.Error(), "", err)
		}
	}
	w := &wire{Conn: socket, raw: raw}
	return &Conn{Conn: w, wire: w, target: t}, nil
}

// noSocket stands for the socket of a stream that has none.
type noSocket struct{}

func (noSocket) Control(func(uintptr)) error    { return ErrNotSupported }
func (noSocket) Read(func(uintptr) bool) error  { return ErrNotSupported }
func (noSocket) Write(func(uintptr) bool) error { return ErrNotSupported }

// handshake puts TLS on the wire.
func (c *Conn) handshake(ctx context.Context, config *tls.Config) error {
	c.seam = &seam{c.wire}
	stream := tls.Client(c.seam, config)
	if err := stream.HandshakeContext(ctx); err != nil {
		return err
	}
	c.Conn = stream
	return nil
}

// Read is net.Conn's. A TLS alert, such as the refusal of the client's certificate that TLS 1.3 delivers only here,
// comes back as *Error; every other error as it was, io.EOF and deadlines included.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.secure() {
		return c.Conn.Read(p)
	}
	if n := c.takeEarly(p); n > 0 {
		return n, nil
	}
	n, err := c.Conn.Read(p)
	return n, c.orAlert(err)
}

// Write is net.Conn's. A TLS 1.3 server that refuses the client's certificate sends its alert and resets; if the reset
// is first seen by a Write, the alert that says why is still to be read.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if !c.secure() || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	b := make([]byte, 1) // does not wait: there are bytes, or the end
	if m, readErr := c.Conn.Read(b); m == 0 && readErr != nil {
		if alert := explainAlert(c.target, readErr); alert != nil {
			return n, alert
		}
	} else {
		c.mu.Lock()
		c.early = append(c.early, b[:m]...)
		c.mu.Unlock()
	}
	return n, err
}

func (c *Conn) secure() bool { return c.Conn != net.Conn(c.wire) }

// takeEarly gives back what Write read while looking for an alert.
func (c *Conn) takeEarly(p []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n
}

func (c *Conn) orAlert(err error) error {
	if err == nil {
		return nil
	}
	if alert := explainAlert(c.target, err); alert != nil {
		return alert
	}
	return err
}

// ExplainFirstReply is for a caller that got err instead of the very first reply: it makes the end or reset of the
// stream an *Error of kind ErrClosedEarly with the common reasons, and returns every other error unchanged.
func (c *Conn) ExplainFirstReply(err error) error {
	if !hungUp(err) {
		return err
	}
	fix := "it may speak TLS here (add --tls), have no room (maxclients) or refuse this host (a proxy, bind, a " +
		"firewall)"
	if c.secure() {
		fix = "it may have no room (maxclients) or want another client certificate (--cert, --key)"
	}
	return newError(c.target, ErrClosedEarly, "", fix, err)
}

// ReadDelay is how long the bytes of the last Read of the socket were in the kernel until Read returned them: the
// reader's own delay (scheduling, a busy event loop, the Go runtime's netpoller), never negative. It counts from the
// arrival of their last segment, stamped in software when the driver handed the packet over (SO_TIMESTAMPNS), to the
// return of recvmsg, both by CLOCK_REALTIME, so it includes a step of that clock in between. Under TLS the last Read of
// the socket is that of ciphertext. False if the system or the socket (unix, non-Linux) has no arrival times. The
// kernel may start stamping some ms after the first such socket of the host was opened, so the first segments can lack
// them.
func (c *Conn) ReadDelay() (delay time.Duration, ok bool) {
	if c.wire.arrival.Load() == 0 {
		return 0, false
	}
	return time.Duration(c.wire.delay.Load()), true
}

// SyscallConn gives the socket under the stream, for socket options and for its inode. Reading or writing it would
// break TLS and the arrival times.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.wire.raw, nil }

// Target is what was dialed.
func (c *Conn) Target() Target { return c.target }
