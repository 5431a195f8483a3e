//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// sentinels name the master. They name each other, so that one that can be reached is enough at the start.
type sentinels struct {
	master target.Target // with the credentials of the servers; its address is that of a sentinel
	addrs  []string
}

func newSentinels(t target.Target) *sentinels {
	s := &sentinels{master: t, addrs: []string{t.Addr()}}
	for addr := range strings.SplitSeq(t.Sentinels, ",") {
		if addr != "" {
			s.addrs = append(s.addrs, addr)
		}
	}
	s.master.Sentinel, s.master.Sentinels = "", ""
	return s
}

// ask asks the sentinels one after the other. The one that answered is asked first the next time (redis.io, "Sentinel
// client spec").
func (s *sentinels) ask(ctx context.Context, rt *router) (topology, error) {
	var list []target.Target
	for _, addr := range s.addrs {
		list = append(list, s.master.WithAddr(addr))
	}
	return firstOf(ctx, list, func(ctx context.Context, t target.Target) (topology, error) {
		addr, others, err := masterOf(ctx, t, rt.seed.Sentinel)
		if err != nil {
			return nil, err
		}
		for _, other := range others {
			if !slices.Contains(s.addrs, other) {
				s.addrs = append(s.addrs, other)
			}
		}
		i := slices.Index(s.addrs, t.Addr())
		if i > 0 {
			s.addrs[0], s.addrs[i] = s.addrs[i], s.addrs[0]
		}
		master := s.master.WithAddr(addr)
		if rt.readFrom == Master {
			return topology{oneShard(master, nil)}, nil
		}
		r, err := replicationOf(ctx, master)
		if err != nil {
			// it may be down: its connections show it, and the next refresh finds its successor
			return topology{oneShard(master, nil)}, nil
		}
		return topology{oneShard(master, r.replicas)}, nil
	})
}

// masterOf asks a sentinel for the address of a master, and for the other sentinels.
func masterOf(ctx context.Context, t target.Target, name string) (addr string, others []string, err error) {
	s, err := openSentinel(ctx, t)
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	reply, err := s.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
	if err != nil {
		return "", nil, fmt.Errorf("asking %s for the master %q: %w; is this a sentinel?", t.Addr(), name, err)
	}
	if len(reply.Elems) != 2 {
		return "", nil, fmt.Errorf("%w: the sentinel %s knows no master %q; SENTINEL MASTERS lists them", ErrTopology,
			t.Addr(), name)
	}
	addr = net.JoinHostPort(reply.Elems[0].Text(), reply.Elems[1].Text())
	if reply, err = s.Do(ctx, "SENTINEL", "SENTINELS", name); err != nil {
		return addr, nil, nil // an ACL may forbid it; the known sentinel is enough
	}
	for _, e := range reply.Elems {
		host, _ := e.Get("ip")
		port, _ := e.Get("port")
		if !host.IsNull() && !port.IsNull() {
			others = append(others, net.JoinHostPort(host.Text(), port.Text()))
		}
	}
	return addr, others, nil
}

// openSentinel logs in to a sentinel, which has no databases, and often not the password of its servers.
func openSentinel(ctx context.Context, t target.Target) (*session.Session, error) {
	t.DB, t.Protocol = 0, 0
	s, _, err := session.Open(ctx, t, "")
	if errors.Is(err, session.ErrWrongPassword) {
		t.User, t.Password = "", ""
		if bare, _, bareErr := session.Open(ctx, t, ""); bareErr == nil {
			return bare, nil
		}
	}
	return s, err
}
