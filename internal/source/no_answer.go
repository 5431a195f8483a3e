package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// plainTimeout bounds the attempt without TLS at a server that did not answer with TLS.
const plainTimeout = 500 * time.Millisecond

// explainNoAnswer finds out after a TLS handshake without an answer whether the server speaks no TLS: Redis then takes
// the ClientHello for an unfinished line, and waits for its end.
func explainNoAnswer(ctx context.Context, t target.Target, err error) error {
	if t.TLS == nil || !errors.Is(err, target.ErrTimeout) || ctx.Err() != nil || !answersPlain(ctx, t) {
		return err
	}
	return &target.Error{Addr: t.Addr(), Kind: target.ErrNotTLS, // and no longer a timeout
		Text: target.ErrNotTLS.Error() + ", it answers in plain; drop --tls, or write redis:// instead of rediss://"}
}

// answersPlain connects without TLS and without a password.
func answersPlain(ctx context.Context, t target.Target) bool {
	t.TLS, t.User, t.Password, t.DB, t.Protocol = nil, "", "", 0, 0
	ctx, cancel := context.WithTimeout(ctx, plainTimeout)
	defer cancel()
	s, _, err := session.Open(ctx, t, "")
	if err == nil {
		s.Close()
		return true
	}
	var reply *resp.ServerError
	return errors.As(err, &reply)
}

// acceptFailure decides whether a server that did not accept the first connection can be watched all the same. It
// returns the error where it cannot.
func (n node) acceptFailure(o Options, sink recording.Sink, err error) (node, error) {
	if isNoAnswer(err) && !o.NoHost {
		// No answer is evidence only where the process that does not answer can be seen.
		n.locate(o.FS, host.Query{Network: n.target.Network, Listen: listenAddress(n.target), UnixPath: n.target.Path})
		if n.process == nil || !n.process.IsServer() {
			return n, err
		}
	} else if !isServerState(err) {
		return n, err
	}
	d := recording.ErrorDetail{Phase: "handshake", Message: err.Error()}
	var se *resp.ServerError
	if errors.As(err, &se) {
		d.Code = se.Code
	}
	sink.Event(recording.Event{
		TimeNs: o.Clock.Now(), Source: recording.SourceServer, Subject: n.address,
		Kind: recording.KindError, Detail: recording.Detail(d),
	})
	if n.process == nil && !o.NoHost {
		n.locate(o.FS, host.Query{Network: n.target.Network, Listen: listenAddress(n.target), UnixPath: n.target.Path})
	}
	return n, nil
}

// isServerState recognises the error replies of a server in trouble, which doctor is there for.
func isServerState(err error) bool {
	return errors.Is(err, session.ErrMaxClients) || errors.Is(err, session.ErrBusy) ||
		errors.Is(err, session.ErrLoading) || errors.Is(err, session.ErrMasterDown)
}

// isNoAnswer recognises a peer that answered nothing at all: to a command, to a TLS handshake, or to the SYN (its
// accept queue is full).
func isNoAnswer(err error) bool {
	return errors.Is(err, session.ErrTimeout) || errors.Is(err, target.ErrTimeout) || errors.Is(err, target.ErrBacklog)
}

// passesOn reports whether a process without INFO of its own is a proxy: it is no server by its name, and has dialled
// others.
func passesOn(fs host.FS, p host.Process) bool {
	if p.IsServer() {
		return false
	}
	_, peers, err := host.Connected(fs, p.PID)
	return err == nil && len(peers) > 0
}

// locate finds the server's process on this host, also behind a proxy.
func (n *node) locate(fs host.FS, q host.Query) {
	p, err := host.Locate(fs, q)
	switch {
	case errors.Is(err, host.ErrNotHere):
		n.hostWhy, n.hostEnable = "the server does not run on this host", "run slowpath on the server's host"
	case errors.Is(err, errors.ErrUnsupported):
		n.hostWhy, n.hostEnable = err.Error(), "run slowpath on the server's host, or use --no-host"
	case err != nil:
		n.hostWhy, n.hostEnable = err.Error(), "run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
	case p.Foreign:
		n.proxy = p
		if behind, err := host.Behind(fs, p.PID, q.WantPID); err == nil {
			n.process = &behind
			return
		}
		n.hostWhy = fmt.Sprintf("%s[%d] listens at this address and forwards calls, and no single server on this host "+
			"was found behind it", p.Comm, p.PID)
		n.hostEnable = "name the server itself as a second target, or run slowpath on its host"
	default:
		n.process = &p
		if (n.identity.Server == "" || n.identity.Merged()) && passesOn(fs, p) {
			n.proxy = p
		}
	}
}
