package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// Kinds of errors, to be matched with errors.Is. A peer that is no Redis matches resp.ErrNotRedis.
var (
	ErrForbidden = errors.New("not on the allow-list of commands that never disturb a server")
	ErrBroken    = errors.New("the session ended by an earlier error")

	ErrTimeout       = errors.New("no reply")
	ErrClosed        = errors.New("the server closed the connection")
	ErrWrongPassword = errors.New("wrong user or password")
	ErrNoAuth        = errors.New("the server wants a password")
	ErrMaxClients    = errors.New("the server has no room for another connection")
	ErrProtected     = errors.New("the server is in protected mode")
	ErrLoading       = errors.New("the server is loading its data")
	ErrBusy          = errors.New("the server is busy with a script")
	ErrMasterDown    = errors.New("the replica has lost its master")
)

// Error is a failed handshake or call. It prints on one line and holds no credential.
type Error struct {
	Addr string // of the target
	Kind error  // one of the Err… values, or nil if none fits
	Text string // what happened and, where known, how to mend it
	Err  error  // what the server or the system said; of an error reply, a *resp.ServerError
}

func (e *Error) Error() string { return e.Addr + ": " + e.Text }

// Unwrap lets errors.Is and errors.As find both the Kind and the error reply or cause.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// Timeout makes Error usable where a net.Error is asked for its timeout.
func (e *Error) Timeout() bool { return errors.Is(e.Kind, ErrTimeout) }

// states are the error replies about the server or the login, as opposed to the command.
var states = []struct {
	code, text string // an error reply with this code that contains this text
	kind       error
	line       string
}{
	{"WRONGPASS", "", ErrWrongPassword, "wrong user or password; check --user, -a and REDISCLI_AUTH"},
	{"ERR", "invalid password", ErrWrongPassword, "wrong password; check -a and REDISCLI_AUTH"}, // before 6.0
	{"NOAUTH", "", ErrNoAuth, "the server wants a password; give -a or REDISCLI_AUTH, and --user if it has users"},
	{"ERR", "max number of clients", ErrMaxClients, "the server refuses new connections, maxclients is reached; " +
		"close idle ones or raise maxclients"},
	{"DENIED", "", ErrProtected, "the server is in protected mode and takes connections from its own host only; set " +
		"a password there, or run slowpath on that host"},
	{"LOADING", "", ErrLoading, "the server is loading its data from disk or from its master; wait until it is done"},
	{"BUSY", "", ErrBusy, "the server is busy with a script that runs longer than busy-reply-threshold; wait, or " +
		"SCRIPT KILL it"},
	{"MASTERDOWN", "", ErrMasterDown, "the replica has lost its master and has replica-serve-stale-data no; ask the " +
		"master"},
}

// replyError is the error of an error reply, nil for any other reply.
func (s *Session) replyError(v resp.Value) error { return explainReply(s.addr, v.Err()) }

func explainReply(addr string, err error) error {
	var reply *resp.ServerError
	if !errors.As(err, &reply) {
		return err
	}
	for _, st := range states {
		if reply.Code == st.code && strings.Contains(reply.Message, st.text) {
			return &Error{Addr: addr, Kind: st.kind, Text: st.line, Err: reply}
		}
	}
	return reply
}

// explainIO describes a failed write or read in one line. Command is the one whose reply did not come.
func (s *Session) explainIO(ctx context.Context, err error, command string, limit time.Duration) error {
	var timeout net.Error
	var tls *target.Error
	fail := func(kind error, text string, cause error) error {
		return &Error{Addr: s.addr, Kind: kind, Text: text, Err: cause}
	}
	command = strings.ToUpper(command)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(nil, "canceled while waiting for the reply to "+command, context.Canceled)
	case errors.As(err, &tls):
		return err
	case errors.As(err, &timeout) && timeout.Timeout():
		return fail(ErrTimeout, fmt.Sprintf("connected, but no reply to %s within %v: the process may be frozen, or "+
			"this is no Redis",
			command, limit.Round(time.Millisecond)), errors.Join(context.DeadlineExceeded, err))
	case errors.Is(err, resp.ErrNotRedis):
		return fail(nil, err.Error(), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(ErrClosed, "the connection was closed in the middle of the reply to "+command+
			"; see the log of the server, and of proxies before it", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		var first *target.Error
		if s.in.bytes == 0 && errors.As(s.conn.ExplainFirstReply(err), &first) {
			return fail(ErrClosed, first.Text, err)
		}
		return fail(ErrClosed, "the connection was closed before the reply to "+command+
			"; the server ended, killed this client, or a firewall or proxy cut it", err)
	case errors.Is(err, net.ErrClosed):
		return fail(ErrClosed, "the session was closed", err)
	}
	fix := ""
	if errors.Is(err, resp.ErrProtocol) || errors.Is(err, resp.ErrTooManyElements) || errors.Is(err,
		resp.ErrTooLarge) || errors.Is(err, resp.ErrTooDeep) {
		fix = "; is this a Redis? Check the host and the port"
	}
	return fail(nil, fmt.Sprintf("reply to %s: %v%s", command, err, fix), err)
}
