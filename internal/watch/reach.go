package watch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"slowpath/internal/cluster"
	"slowpath/internal/host"
	"slowpath/internal/recording"
	"slowpath/internal/resp"
	"slowpath/internal/server"
	"slowpath/internal/session"
	"slowpath/internal/target"
)

// node is a server that will be watched.
type node struct {
	target     target.Target
	address    string
	identity   server.Identity
	process    *host.Process // nil: not on this host, or not looked for
	hostWhy    string
	hostEnable string
	hashTag    string
}

func (n node) kind() string {
	switch {
	case n.process != nil && n.process.Foreign:
		return "proxy"
	case n.identity.ClusterEnabled:
		return "cluster"
	case n.identity.Server == "":
		return "unknown"
	default:
		return "standalone"
	}
}

// reach connects to every target once and, from a node of a cluster, finds the others.
func reach(ctx context.Context, o Options, sink recording.Sink) ([]node, error) {
	var nodes []node
	seen := map[string]bool{}
	for _, t := range o.Targets {
		if seen[t.Addr()] {
			continue
		}
		seen[t.Addr()] = true
		o.Progress("connecting to " + t.Addr())
		n, err := meet(ctx, o, sink, t)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		for _, addr := range n.identity.Nodes {
			if seen[addr] || addr == t.Addr() {
				continue
			}
			seen[addr] = true
			if len(nodes) >= maxNodes {
				blind(sink, o.Clock, addr, recording.BlindSpot{What: "cluster node " + addr, Why: fmt.Sprintf("only %d nodes are watched at a time", maxNodes), Enable: "slowpath doctor " + addr})
				continue
			}
			peer, err := meet(ctx, o, sink, t.WithAddr(addr))
			if err != nil {
				blind(sink, o.Clock, addr, recording.BlindSpot{What: "cluster node " + addr, Why: err.Error(), Enable: "run slowpath where the node can be reached"})
				continue
			}
			nodes = append(nodes, peer)
		}
	}
	return nodes, nil
}

// meet makes the first connection to a server. Errors that are themselves the evidence (no room for clients, a process on this
// host that does not answer, a server that is busy or loading) do not end the watch.
func meet(ctx context.Context, o Options, sink recording.Sink, t target.Target) (node, error) {
	n := node{target: t, address: t.Addr()}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, _, err := session.Open(ctx, t, "slowpath")
	if err != nil {
		return n.despite(o, sink, err)
	}
	defer s.Close()
	n.identity, err = server.Identify(ctx, s)
	if err != nil {
		if n, err = n.despite(o, sink, err); err != nil {
			return n, err
		}
	}
	if n.identity.ClusterEnabled {
		n.hashTag = tagOf(ctx, s)
	}
	if !o.NoHost && n.process == nil {
		n.locate(host.Query{Network: t.Network, Local: s.LocalAddr(), Remote: s.RemoteAddr(), UnixPath: t.Path, PeerPID: peerPID(s), WantPID: n.identity.ProcessID, Listen: listen(t)})
	}
	return n, nil
}

func peerPID(s *session.Session) int {
	pid, _ := s.Conn().PeerPID()
	return pid
}

func listen(t target.Target) string {
	if t.Network == "unix" {
		return ""
	}
	return t.Addr()
}

// despite decides whether a server that did not let us in can be watched all the same.
func (n node) despite(o Options, sink recording.Sink, err error) (node, error) {
	switch {
	case errors.Is(err, session.ErrMaxClients), errors.Is(err, session.ErrBusy), errors.Is(err, session.ErrLoading), errors.Is(err, session.ErrMasterDown):
	case errors.Is(err, session.ErrTimeout) && !errors.Is(err, resp.ErrNotRedis) && !o.NoHost:
		// Silence is evidence only where the silent process can be seen.
		n.locate(host.Query{Network: n.target.Network, Listen: listen(n.target), UnixPath: n.target.Path})
		if n.process == nil || !isServer(n.process) {
			return n, err
		}
	default:
		return n, err
	}
	d := recording.ErrorDetail{Phase: "handshake", Message: err.Error()}
	var se *resp.ServerError
	if errors.As(err, &se) {
		d.Code = se.Code
	}
	sink.Event(recording.Event{TimeNs: o.Clock.Now(), Source: recording.SourceServer, Subject: n.address, Kind: recording.KindError, Detail: recording.Detail(d)})
	if n.process == nil && !o.NoHost {
		n.locate(host.Query{Network: n.target.Network, Listen: listen(n.target), UnixPath: n.target.Path})
	}
	return n, nil
}

// locate looks for the server's process on this host.
func (n *node) locate(q host.Query) {
	p, err := host.Locate(host.Root{}, q)
	switch {
	case errors.Is(err, host.ErrNotHere):
		n.hostWhy, n.hostEnable = "the server does not run on this host", "run slowpath on the server's host"
	case err != nil:
		n.hostWhy, n.hostEnable = err.Error(), "run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
	case p.Foreign:
		n.hostWhy, n.hostEnable = fmt.Sprintf("%s[%d] answers at this address and passes calls on to a server elsewhere", p.Comm, p.PID), "name the server itself as a second target"
	default:
		n.process = &p
	}
}

// tagOf finds a hash tag whose slot the node serves, so that the probe's keys cause no redirects; empty for a replica, and for a
// primary without slots.
func tagOf(ctx context.Context, s *session.Session) string {
	v, err := s.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return ""
	}
	m, err := cluster.ParseNodes(v.Text())
	if err != nil {
		return ""
	}
	for _, n := range m.Nodes {
		if n.HasFlag("myself") && len(n.Ranges) > 0 {
			return cluster.TagForSlot(n.Ranges[0].From)
		}
	}
	return ""
}

// isServer reports whether a process looks like a server that speaks the Redis protocol.
func isServer(p *host.Process) bool {
	for _, name := range []string{"redis", "valkey", "keydb", "dragonfly"} {
		if strings.Contains(p.Comm, name) || strings.Contains(filepath.Base(p.Args0), name) {
			return true
		}
	}
	return false
}
