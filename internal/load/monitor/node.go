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
	address       string
	proxy         bool
	processName   string // empty where the process is the server
	process       *host.Process
	meter         *host.Meter
	session       *session.Session // nil: it is not asked by INFO
	localAddr     string           // this end of a connection to it
	remoteAddr    string           // the other end
	whyNotVisible string           // empty: it is

	usage   series[host.Usage]
	infoCPU series[server.CPU]

	readings, blockedReadings int
}

// proxies are names of processes that answer no INFO, or pass it on.
var proxies = map[string]bool{
	"nutcracker": true, "haproxy": true, "envoy": true, "nginx": true, "predixy": true,
	"stunnel": true, "stunnel4": true,
	"redis-cluster-p": true, "codis-proxy": true, "corvus": true, "socat": true,
} // 15 bytes at most (TASK_COMM_LEN)

// openNode finds the process of a target, and how its CPU time can be read. Peers are the other nodes of its cluster.
func openNode(ctx context.Context, fs host.FS, t target.Target) (nodes []*node, peers []string) {
	n := &node{address: t.Addr()}
	s, _, err := session.Open(ctx, t, "slowpath-bench")
	if err != nil {
		n.whyNotVisible = err.Error()
		return []*node{n}, nil
	}
	n.localAddr, n.remoteAddr = s.LocalAddr(), s.RemoteAddr()
	id, err := server.Identify(ctx, s)
	if err != nil {
		n.whyNotVisible = err.Error() // its process may still be readable
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
	case n.process.Foreign && s != nil: // a proxy on this host; INFO comes from the server behind it
		n.proxy, n.processName = true, n.process.Comm
		behind := &node{address: "the server behind " + t.Addr(), session: s}
		if severalAnswer(ctx, t, id.RunID) {
			behind.close()
			behind.note(errSeveral)
		}
		nodes = append(nodes, behind)
	default:
		if id.Server == "" || id.ProcessID == 0 { // no INFO of its own: its process name is all that is known
			n.proxy, n.processName = proxies[n.process.Comm], n.process.Comm
		}
		if s != nil {
			s.Close()
		}
	}
	return append([]*node{n}, nodes...), id.Nodes
}

// errSeveral says why the CPU time of servers behind a proxy cannot be known from INFO.
var errSeveral = errors.New("the proxy passes INFO on to several servers, now to one and then to another")

// timesAsked is how many more connections are made to find that out. With two servers, all of them meet the same one
// once in 256 times.
const timesAsked = 8

// severalAnswer reports whether behind a proxy another server answers INFO than the one with a run id.
func severalAnswer(ctx context.Context, t target.Target, runID string) bool {
	for range timesAsked {
		s, _, err := session.Open(ctx, t, "slowpath-bench")
		if err != nil {
			return false
		}
		id, err := server.Identify(ctx, s)
		s.Close()
		if err == nil && id.RunID != runID {
			return true
		}
	}
	return false
}

func (n *node) note(err error) {
	if err != nil && n.whyNotVisible == "" {
		n.whyNotVisible = err.Error()
	}
}

func (n *node) close() {
	if n.session != nil {
		n.session.Close()
		n.session = nil
	}
}

// read takes one reading.
func (n *node) read(c *clock.Real) {
	if n.meter != nil {
		u, err := n.meter.Read()
		if err != nil {
			n.note(fmt.Errorf("its process ended during the load: %w", err))
			n.meter = nil
			return
		}
		n.usage.add(c.Now(), u)
		n.readings++
		if u.State == 'D' {
			n.blockedReadings++
		}
		return
	}
	if n.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
	defer cancel()
	cpu, err := server.AskCPU(ctx, n.session)
	if err != nil { // a busy server answers late, and one that refuses never will
		n.note(err)
		n.close()
		return
	}
	n.infoCPU.add(c.Now(), cpu) // INFO is computed just before its reply
}

func (n *node) visibility() bottleneck.Visibility {
	switch {
	case n.usage.first.at != 0 && n.meter != nil:
		return bottleneck.VisibleOnHost
	case n.infoCPU.first.at == 0:
		return bottleneck.NotVisible
	case n.infoCPU.first.value.Main > 0:
		return bottleneck.VisibleMainThread
	}
	return bottleneck.VisibleProcess
}

// observe is what the node did from its first reading to endNs.
func (n *node) observe(endNs int64, window time.Duration) bottleneck.Server {
	s := bottleneck.Server{
		Address: n.address, Proxy: n.proxy, Process: n.processName, Visibility: n.visibility(),
		WhyNotVisible: n.whyNotVisible,
	}
	var ok bool
	switch s.Visibility {
	case bottleneck.VisibleOnHost:
		ok = n.observeOnHost(&s, endNs, window)
	case bottleneck.VisibleMainThread, bottleneck.VisibleProcess:
		var from, to server.CPU
		var scale float64
		if from, to, scale, ok = n.infoCPU.span(endNs, window); ok {
			s.CPU = scaled(to.Process-from.Process, scale)
			s.MainThread.CPU = scaled(to.Main-from.Main, scale)
			if s.Visibility == bottleneck.VisibleProcess {
				s.MainThread.CPU = s.CPU
			}
		}
		ok = ok && s.MainThread.CPU >= 0 // below 0: it was restarted
	}
	if !ok {
		s.Visibility, s.CPU = bottleneck.NotVisible, 0
		if s.WhyNotVisible == "" {
			s.WhyNotVisible = "it could not be read twice"
		}
	}
	return s
}

func (n *node) observeOnHost(s *bottleneck.Server, endNs int64, window time.Duration) bool {
	from, to, scale, ok := n.usage.span(endNs, window)
	if !ok {
		return false
	}
	before := map[int]host.ThreadUsage{}
	for _, t := range from.Threads {
		before[t.TID] = t
	}
	for i, t := range to.Threads {
		b := before[t.TID] // zero for a thread that was started meanwhile
		x := bottleneck.Thread{Name: t.Name, CPU: scaled(t.Run-b.Run, scale), RunQueue: scaled(t.Ready-b.Ready, scale)}
		s.CPU += x.CPU
		if i == 0 {
			s.MainThread = x
		} else {
			s.OtherThreads = append(s.OtherThreads, x)
		}
	}
	s.Blocked = float64(n.blockedReadings) / float64(max(n.readings, 1))
	s.Quotas, s.CPUs = quotas(from.Quotas, to.Quotas, scale), to.CPUs
	return true
}
