package engine

import (
	"context"
	"errors"
	"io"
	"syscall"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Kinds of failures, by which they are counted. Those of an attempt to connect begin with "connecting: ".
const (
	kindClosed       = "closed by the server"
	kindTimeout      = "timeout"
	kindAfterTimeout = "closed after a timeout"
	kindNoPort       = "connecting: no free local port"
	kindNoFile       = "connecting: too many open files"
	kindMaxClients   = "connecting: maxclients reached"
	kindRefused      = "connecting: refused"
	kindDialTimeout  = "connecting: timeout"
	kindNoLogin      = "connecting: no reply to the login"
)

var (
	errUnasked = errors.New("a reply without a request")
	errTimeout = errors.New(kindTimeout)
)

// failures are matched in this order. Those of connecting do not occur on an open connection.
var failures = []struct {
	err  error
	kind string
}{
	{errTimeout, kindTimeout},
	{errUnasked, errUnasked.Error()},
	{session.ErrMaxClients, kindMaxClients},
	{session.ErrWrongPassword, "connecting: wrong user or password"},
	{session.ErrNoAuth, "connecting: the server wants a password"},
	{session.ErrProtected, "connecting: the server is in protected mode"},
	{session.ErrTimeout, kindNoLogin},
	{session.ErrClosed, "connecting: closed by the server"},
	{target.ErrRefused, kindRefused},
	{target.ErrNameNotFound, "connecting: name not found"},
	{target.ErrBacklog, "connecting: listen backlog full"},
	{target.ErrNoSocket, "connecting: no such socket"},
	{target.ErrUnreachable, "connecting: unreachable"},
	{target.ErrTimeout, kindDialTimeout},
	{syscall.EADDRNOTAVAIL, kindNoPort},
	{syscall.EMFILE, kindNoFile},
	{syscall.ENFILE, kindNoFile},
	{resp.ErrProtocol, "no RESP"},
	{resp.ErrTooDeep, "no RESP"},
	{io.ErrUnexpectedEOF, kindClosed},
	{io.EOF, kindClosed},
	{context.DeadlineExceeded, kindDialTimeout},
}

// errorKind is the kind by which an error of a connection is counted.
func errorKind(err error) string {
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.kind
		}
	}
	kind := err.Error()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		kind = errno.Error()
	}
	var dialing *target.Error
	if errors.As(err, &dialing) {
		kind = "connecting: " + kind
	}
	const longestKind = 120
	return kind[:min(len(kind), longestKind)]
}

// Fix says what can be done about a kind of failure of Tally.Errors and ConnErrors; "" where nothing is known.
func Fix(kind string) string {
	switch kind {
	case kindNoPort:
		return "closed connections hold their local ports for 60 s (TIME_WAIT): widen net.ipv4.ip_local_port_range, " +
			"set net.ipv4.tcp_tw_reuse=1, connect less often, or spread the load over more machines"
	case kindNoFile:
		return "raise the limit of open files (ulimit -n)"
	case kindMaxClients:
		return "use fewer connections, or raise the server's maxclients"
	case kindRefused:
		return "check that the server runs; it may be down, or restarting"
	case kindDialTimeout:
		return "the listen backlog may be full (net.core.somaxconn and the server's tcp-backlog), or packets are " +
			"dropped"
	case kindNoLogin:
		return "the server's process may be frozen, or busy with a long command"
	case kindTimeout:
		return "the server did not answer in time: see slowpath doctor for why"
	}
	return ""
}

// maxKinds bounds the kinds that are counted: a server may send any number of error codes.
const maxKinds = 64

// otherKinds counts the others.
const otherKinds = "other"

func countKind(m map[string]int64, kind string, n int64) {
	if _, known := m[kind]; !known && len(m) >= maxKinds {
		kind = otherKinds
	}
	m[kind] += n
}
