//go:build linux

package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/source/host"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// node is a server, or the proxy in front of one.
type node struct {
	address string
	proxy   bool
	name    string // of the process, where that is not the server
	process *host.Process
	meter   *host.Meter
	session *session.Session // nil: it is not asked
	local   string           // this end of a connection to it
	why     string           // it is not seen

	usage series[host.Usage]
	asked series[server.CPU]

	looks, blocked int
}

// proxies are the names of the processes of those that answer no INFO, or pass it on.
var proxies = map[string]bool{
	"nutcracker": true, "haproxy": true, "envoy": true, "nginx": true, "predixy": true,
	"stunnel": true, "stunnel4": true,
	"redis-cluster-p": true, "codis-proxy": true, "corvus": true, "socat": true,
} // 15 bytes at most (TASK_COMM_LEN)

// find looks for the process of a target, and for how it can be asked.
func find(ctx context.Context, fs host.FS, t target.Target) (nodes []*node, peers []string) {
	n := &node{address: t.Addr()}
	s, _, err := session.Open(ctx, t, "slowpath-bench")
	if err != nil {
		n.why = err.Error()
		return []*node{n}, nil
	}
	n.local = s.LocalAddr()
	id, err := server.Identify(ctx, s)
	if err != nil {
		n.why = err.Error() // its process may be seen all the same
		s.Close()
		s = nil
	}
	q := host.Query{Network: t.Network, UnixPath: t.Path, WantPID: id.ProcessID}
	if s != nil {
		q.Local, q.Remote = s.LocalAddr(), s.RemoteAddr()
		q.PeerPID, _ = s.Conn().PeerPID()
	}
	if t.Network != "unix" {
		q.Listen = t.Addr()
	}
	if p, err := host.Locate(fs, q); err == nil {
		n.process = &p
		n.meter, err = host.NewMeter(fs, p.PID)
		n.note(err)
	} else if errors.Is(err, os.ErrPermission) {
		n.note(err)
	}
	switch {
	case n.meter == nil:
		n.session = s
	case n.process.Foreign && s != nil: // a proxy on this host; the server behind it is asked
		n.proxy, n.name = true, n.process.Comm
		nodes = append(nodes, &node{address: "the server behind " + t.Addr(), session: s})
	default:
		if id.Server == "" { // it may be one that has no INFO, and then its name is all that is known
			n.proxy, n.name = proxies[n.process.Comm], n.process.Comm
		}
		if s != nil {
			s.Close()
		}
	}
	return append([]*node{n}, nodes...), id.Nodes
}

func (n *node) note(err error) {
	if err != nil && n.why == "" {
		n.why = err.Error()
	}
}

func (n *node) close() {
	if n.session != nil {
		n.session.Close()
		n.session = nil
	}
}

// read takes a reading.
func (n *node) read(c *clock.Real) {
	if n.meter != nil {
		u, err := n.meter.Read()
		if err != nil {
			n.note(fmt.Errorf("its process has ended during the load: %w", err))
			n.meter = nil
			return
		}
		n.usage.add(c.Now(), u)
		n.looks++
		if u.State == 'D' {
			n.blocked++
		}
		return
	}
	if n.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cpu, err := server.AskCPU(ctx, n.session)
	if err != nil { // one that is busy answers late, and one that refuses never will
		n.note(err)
		n.close()
		return
	}
	n.asked.add(c.Now(), cpu) // INFO tells of the moment just before its reply
}

func (n *node) sight() bottleneck.Sight {
	switch {
	case n.usage.first.at != 0 && n.meter != nil:
		return bottleneck.SightHost
	case n.asked.first.at == 0:
		return bottleneck.SightNone
	case n.asked.first.value.Main > 0:
		return bottleneck.SightMain
	}
	return bottleneck.SightProcess
}

// seen is what the node did from the first reading to endNs.
func (n *node) seen(endNs int64, window time.Duration) bottleneck.Server {
	s := bottleneck.Server{Address: n.address, Proxy: n.proxy, Process: n.name, Sight: n.sight(), Why: n.why}
	var ok bool
	switch s.Sight {
	case bottleneck.SightHost:
		ok = n.onHost(&s, endNs, window)
	case bottleneck.SightMain, bottleneck.SightProcess:
		var from, to server.CPU
		var scale float64
		if from, to, scale, ok = n.asked.span(endNs, window); ok {
			s.Main.CPU = scaled(to.Main-from.Main, scale)
			if s.Sight == bottleneck.SightProcess {
				s.Main.CPU = scaled(to.Process-from.Process, scale)
			}
		}
		ok = ok && s.Main.CPU >= 0 // else it was restarted
	}
	if !ok {
		s.Sight = bottleneck.SightNone
		if s.Why == "" {
			s.Why = "it could not be read twice"
		}
	}
	return s
}

func (n *node) onHost(s *bottleneck.Server, endNs int64, window time.Duration) bool {
	from, to, scale, ok := n.usage.span(endNs, window)
	if !ok {
		return false
	}
	before := map[int]host.ThreadUsage{}
	for _, t := range from.Threads {
		before[t.TID] = t
	}
	for i, t := range to.Threads {
		b := before[t.TID] // a thread that began meanwhile had nothing
		x := bottleneck.Thread{Name: t.Name, CPU: scaled(t.Run-b.Run, scale), Ready: scaled(t.Ready-b.Ready, scale)}
		if i == 0 {
			s.Main = x
		} else {
			s.Others = append(s.Others, x)
		}
	}
	s.Blocked = float64(n.blocked) / float64(max(n.looks, 1))
	s.Quotas, s.CPUs = quotas(from.Quotas, to.Quotas, scale), to.CPUs
	return true
}
