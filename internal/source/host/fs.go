package host

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// FS is every effect of this package on the host. Names are absolute, as on a real host: "/proc/1/stat".
type FS interface {
	// Path is where a name really is, for libraries that read by themselves.
	Path(name string) string
	ReadFile(name string) ([]byte, error)
	// Open keeps a file open that is read again and again from its beginning.
	Open(name string) (File, error)
	// ReadDir gives the names in a directory, unsorted.
	ReadDir(name string) ([]string, error)
	Readlink(name string) (string, error)
	// ReadInNetNS reads a file of /proc/sys/net as it is in the network namespace of a process.
	ReadInNetNS(pid int, name string) ([]byte, error)
	// Sockets opens the TCP socket table of the network namespace of a process.
	Sockets(pid int) (SocketTable, error)
}

// File is an open file of /proc or /sys.
type File interface {
	io.ReaderAt
	io.Closer
}

// SocketTable is the TCP socket table of one network namespace.
type SocketTable interface {
	// Visit calls visit for each socket that is wanted, until it returns false. The socket is valid during the call
	// only.
	Visit(want SocketQuery, visit func(*Socket) bool) error
	// Find calls found for each of the established sockets that is there, with TCP_INFO where there is a way to it. It
	// does not walk through the table where the kernel looks sockets up.
	Find(sockets []Ends, found func(*Socket)) error
	io.Closer
}

// Root is the host below a directory; the zero value is this host. With a directory, sockets come from proc/PID/net/tcp
// there.
type Root struct {
	Dir string
}

// Path is name below the root directory.
func (r Root) Path(name string) string {
	if r.Dir == "" {
		return name
	}
	return filepath.Join(r.Dir, name)
}

// ReadFile reads a whole file.
func (r Root) ReadFile(name string) ([]byte, error) { return readWhole(r.Path(name)) }

// ReadInNetNS reads a file whose content depends on the network namespace of the reader.
func (r Root) ReadInNetNS(pid int, name string) (b []byte, err error) {
	if r.Dir != "" {
		return r.ReadFile(name)
	}
	if inErr := inNetNS(pid, func() { b, err = readWhole(name) }); inErr != nil {
		return nil, inErr
	}
	return b, err
}

// Open opens a file for repeated reading.
func (r Root) Open(name string) (File, error) {
	f, err := openRaw(r.Path(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadDir gives the names in a directory.
func (r Root) ReadDir(name string) ([]string, error) {
	d, err := os.Open(r.Path(name))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Readlink reads a symbolic link.
func (r Root) Readlink(name string) (string, error) { return os.Readlink(r.Path(name)) }

// Sockets opens the socket table by sock_diag, which needs to enter the namespace (CAP_SYS_ADMIN for a foreign one),
// else by /proc/PID/net/tcp, which has no TCP_INFO.
func (r Root) Sockets(pid int) (SocketTable, error) {
	if r.Dir == "" {
		if t, err := openDiag(pid); err == nil {
			return t, nil
		}
	}
	return procSockets{fs: r, pid: pid}, nil
}

// readLine is a one-line file without its newline, empty when it cannot be read.
func readLine(fs FS, name string) string {
	b, err := fs.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
