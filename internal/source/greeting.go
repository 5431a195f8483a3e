package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Greeting is what the first connection to a server showed.
type Greeting struct {
	Identity server.Identity // mostly empty where the server refuses INFO
	Remote   string          // address that the name resolved to
	// HashTag is a hash tag whose slot the node of a cluster serves, so that keys with it are not redirected. It is
	// empty for a server without cluster, for a replica, and for a primary without slots.
	HashTag string
}

// NoKeys reports that the node serves no key at all.
func (g Greeting) NoKeys() bool { return g.Identity.ClusterEnabled && g.HashTag == "" }

// Greet makes the first connection to a server, logs in and asks what it is. Its errors are one line and say how to
// fix them; among them is resp.ErrNotRedis for a peer that answers, but not as Redis does.
func Greet(ctx context.Context, t target.Target, timeout time.Duration) (Greeting, error) {
	s, g, err := greet(ctx, t, timeout)
	if s != nil {
		s.Close()
	}
	return g, err
}

// greet is Greet with the session still open where there is one, even with an error.
func greet(ctx context.Context, t target.Target, timeout time.Duration) (*session.Session, Greeting, error) {
	var g Greeting
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, _, err := session.Open(limited, t, "slowpath")
	if err != nil {
		return nil, g, explainNoAnswer(ctx, t, err)
	}
	g.Remote = s.RemoteAddr()
	if err := checkPong(limited, s, t); err != nil {
		return s, g, err
	}
	if g.Identity, err = server.Identify(limited, s); err != nil && !refused(err) {
		return s, g, err
	}
	g.Identity.Server = strings.TrimSpace(g.Identity.Server)
	if g.Identity.ClusterEnabled {
		g.HashTag = servedHashTag(limited, s)
	}
	return s, g, nil
}

// checkPong makes sure that the peer answers what it is asked, and does not only send what looks like replies.
func checkPong(ctx context.Context, s *session.Session, t target.Target) error {
	v, err := s.Do(ctx, "PING")
	var reply *resp.ServerError
	switch {
	case errors.As(err, &reply), err != nil && refused(err):
		return nil // an error reply is an answer, too: a user may lack even PING, and a server that loads refuses it
	case err != nil:
		return err
	}
	if v.Text() != "PONG" {
		return &session.Error{Addr: t.Addr(), Text: fmt.Sprintf("the peer answers PING with %.40q, so it is not "+
			"Redis; check the host and the port", v.Text()), Err: resp.ErrNotRedis}
	}
	return nil
}

// refused reports whether a peer accepted the login and then refused a command: with an error reply, or, as some
// proxies do, by closing the connection.
func refused(err error) bool {
	var reply *resp.ServerError
	var state *session.Error
	switch {
	case errors.Is(err, session.ErrClosed):
		return !errors.Is(err, io.ErrUnexpectedEOF)
	case errors.As(err, &state):
		return false // maxclients, loading, busy, …: the caller decides
	}
	return errors.As(err, &reply)
}

// connect makes the first connection to a server. Errors that are themselves the evidence (maxclients is reached, a
// process on this host does not answer, a server is busy or loading) do not end the watch.
func connect(ctx context.Context, o Options, sink recording.Sink, t target.Target) (node, error) {
	n := node{target: t, address: t.Addr()}
	s, g, err := greet(ctx, t, o.Timeout)
	n.remote, n.identity, n.hashTag = g.Remote, g.Identity, g.HashTag
	if s != nil {
		defer s.Close()
		n.unnamed = s.NameRefused
		if err == nil && !o.NoTap {
			n.observers = listObservers(ctx, o, s, g.Identity)
		}
	}
	if err != nil {
		if n, err = n.acceptFailure(o, sink, err); err != nil {
			return n, err
		}
	}
	if s != nil && !o.NoHost && n.process == nil {
		n.locate(o.FS, host.Query{
			Network: t.Network, Local: s.LocalAddr(), Remote: s.RemoteAddr(), UnixPath: t.Path,
			PeerPID: peerPID(s), WantPID: n.identity.ProcessID, Listen: listenAddress(t),
		})
	}
	return n, nil
}

// listObservers asks before the watch who else watches, so that not one of their calls counts as a user's.
func listObservers(ctx context.Context, o Options, s *session.Session, id server.Identity) []server.Client {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return server.Observers(ctx, s, id)
}

func peerPID(s *session.Session) int {
	pid, _ := s.Conn().PeerPID()
	return pid
}

func listenAddress(t target.Target) string {
	if t.Network == "unix" {
		return ""
	}
	return t.Addr()
}

// servedHashTag finds a hash tag whose slot the node serves.
func servedHashTag(ctx context.Context, s *session.Session) string {
	v, err := s.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return ""
	}
	m, err := cluster.ParseNodes(v.Text())
	if err != nil {
		return ""
	}
	if n, ok := m.Myself(); ok && len(n.Ranges) > 0 {
		return cluster.TagForSlot(n.Ranges[0].From)
	}
	return ""
}
