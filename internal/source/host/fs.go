package host

import (
	"io"
	"strings"

	"slowpath/internal/source/hostfs"
)

// FS is every effect of this package on the host: its files, and what depends on a network namespace.
type FS interface {
	hostfs.FS
	// ReadInNetNS reads a file of /proc/sys/net as it is in the network namespace of a process.
	ReadInNetNS(pid int, name string) ([]byte, error)
	// Sockets opens the TCP socket table of the network namespace of a process.
	Sockets(pid int) (SocketTable, error)
}

// SocketTable is the TCP socket table of one network namespace.
type SocketTable interface {
	// Visit calls visit for each socket that is wanted, until it returns false. The socket is valid during the call
	// only.
	Visit(want SocketQuery, visit func(*Socket) bool) error
	// Find calls found for each of the established sockets that is there, with TCP_INFO where sock_diag can be used. It
	// does not walk through the table where the kernel finds a socket by its ends.
	Find(sockets []Ends, found func(*Socket)) error
	// VisitUnix calls visit for each Unix stream socket with a path, until it returns false. It needs sock_diag.
	VisitUnix(visit func(UnixSocket) bool) error
	// Queues calls visit for the queueing disciplines of the namespace's devices, until it returns false. It needs
	// rtnetlink.
	Queues(visit func(Queue) bool) error
	io.Closer
}

// Root is the host below a directory; the zero value is this host. With a directory, sockets come from proc/PID/net/tcp
// there.
type Root struct {
	hostfs.Root
	Spaces *Spaces // namespaces that were entered before privileges were given up; may be nil
}

// ReadInNetNS reads a file whose content depends on the network namespace of the reader.
func (r Root) ReadInNetNS(pid int, name string) (b []byte, err error) {
	if r.Dir != "" {
		return r.ReadFile(name)
	}
	if inErr := r.Spaces.in(pid, func() { b, err = r.ReadFile(name) }); inErr != nil {
		return nil, inErr
	}
	return b, err
}

// Sockets opens the socket table with sock_diag, which has to enter the namespace (CAP_SYS_ADMIN for a foreign one),
// else with /proc/PID/net/tcp, which has no TCP_INFO.
func (r Root) Sockets(pid int) (SocketTable, error) {
	if r.Dir == "" {
		if t, err := openDiag(r.Spaces, pid); err == nil {
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
