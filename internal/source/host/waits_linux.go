package host

import (
	"context"
	"net/netip"
	"os"
	"strconv"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// CallersOptions are for a watch of those who call servers from this host, wherever those servers are.
type CallersOptions struct {
	FS    FS // this host when nil
	Clock clock.Clock
	Sink  recording.Sink
	Nodes map[netip.AddrPort]string // where servers are reached, and by which address the recording knows them
	Every time.Duration             // 2 s when 0
}

const (
	waitsEvery = 2 * time.Second
	// waitWorth is noted: shorter waits are the calls themselves.
	waitWorth = time.Second
	maxSpaces = 64 // network namespaces that are looked into
	// ownersEvery so many rounds the descriptors of all processes are looked through for new callers, which costs most.
	ownersEvery = 5
)

// waits is a watch of the sockets by which servers are called from this host: on which of them a request waits for its
// reply, and for how long.
type waits struct {
	CallersOptions
	spaces []SocketTable
	known  map[netip.AddrPort]bool // connections that were noted to wait
	told   map[int]bool            // processes whose runtime was noted
	inodes map[uint64]netip.AddrPort
	rounds int
}

// WatchCallers notes, until the context ends, who calls the servers from this host, and which of their connections wait
// for a reply. The kernel keeps for each socket when it last sent data and when it last had some: one that sent last
// waits for an answer. So a wait is known from its begin, however long before the watch that was.
func WatchCallers(ctx context.Context, o CallersOptions) error {
	if o.FS == nil {
		o.FS = Root{}
	}
	if o.Every <= 0 {
		o.Every = waitsEvery
	}
	w := &waits{CallersOptions: o, known: map[netip.AddrPort]bool{}, told: map[int]bool{}}
	defer w.close()
	if err := w.open(); err != nil {
		return err
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		w.round()
		select {
		case <-ctx.Done():
			w.round() // once more, for waits that began late
			return nil
		case <-tick.C:
		}
	}
}

// open opens the socket tables of all namespaces. The way without sock_diag tells no times, and is left out.
func (w *waits) open() error {
	spaces, err := netSpaces(w.FS)
	if err != nil {
		return err
	}
	for _, s := range spaces[:min(len(spaces), maxSpaces)] {
		table, err := w.FS.Sockets(s.pid)
		if err != nil {
			continue
		}
		if _, ok := table.(procSockets); ok {
			table.Close()
			continue
		}
		w.spaces = append(w.spaces, table)
	}
	return nil
}

func (w *waits) close() {
	for _, s := range w.spaces {
		s.Close()
	}
}

func (w *waits) round() {
	waiting := map[netip.AddrPort]bool{}
	w.inodes = map[uint64]netip.AddrPort{}
	var found []Socket
	for _, table := range w.spaces {
		for _, port := range w.ports() {
			_ = table.Visit(SocketQuery{States: 1 << tcpEstablished, RemotePort: port, Info: true},
				func(s *Socket) bool {
					if _, ok := w.Nodes[unmapped(s.Remote)]; !ok || s.Inode == 0 {
						return true
					}
					w.inodes[s.Inode] = unmapped(s.Remote)
					if s.waitNs() >= int64(waitWorth) {
						found = append(found, *s)
					}
					return len(w.inodes) < maxInodes
				})
		}
	}
	owners := w.owners(found)
	for _, s := range found {
		local := unmapped(s.Local)
		if owners[s.Inode] == os.Getpid() {
			continue // slowpath's own
		}
		waiting[local] = true
		w.note(&s, local, owners[s.Inode])
	}
	for local := range w.known {
		if !waiting[local] {
			delete(w.known, local)
			w.sample(local, "waiting_ns", 0)
		}
	}
}

func (w *waits) ports() (out []int) {
	seen := map[int]bool{}
	for a := range w.Nodes {
		if p := int(a.Port()); !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

func (w *waits) note(s *Socket, local netip.AddrPort, pid int) {
	if !w.known[local] {
		w.known[local] = true
		body := recording.Waiter{Node: w.Nodes[unmapped(s.Remote)], PID: pid}
		if pid != 0 {
			if p, err := describe(w.FS, pid, Query{}, 0); err == nil {
				body.Comm = p.Comm
			}
		}
		w.Sink.Snapshot(recording.Snapshot{
			TimeNs: w.Clock.Now(), Source: recording.SourceHost,
			Subject: recording.ConnPrefix + local.String(), Name: recording.SnapshotWaiter,
			Body: recording.Detail(body),
		})
	}
	w.sample(local, "waiting_ns", float64(s.waitNs()))
	w.sample(local, "waiting_resends", float64(s.Backoff))
}

func (w *waits) sample(local netip.AddrPort, name string, v float64) {
	w.Sink.Sample(recording.Sample{TimeNs: w.Clock.Now(), Source: recording.SourceHost, Subject: recording.ConnPrefix +
		local.String(), Name: name, Value: v})
}

// waitNs is for how long a socket has waited for an answer to what it sent; 0 where it does not. What is sent again
// counts from the first time: with each the timer doubles, so that it is as long as all the waits before it and one
// more.
func (s *Socket) waitNs() int64 {
	if !s.HasInfo || s.DataSegsOut == 0 || s.ReceivedAgoNs < s.SentAgoNs {
		return 0
	}
	if s.ReceivedAgoNs == s.SentAgoNs && s.DataSegsIn > 0 && s.Unacked == 0 && !s.ackedAfter() {
		return 0
	}
	return s.SentAgoNs + s.RTONs - s.RTONs>>min(s.Backoff, 32)
}

// When a peer acknowledges what it does not answer: after TCP_DELACK_MIN (40 ms) at the earliest and TCP_DELACK_MAX
// (200 ms) at the latest, give or take a tick of the kernel's clock.
const (
	delayedACKMin = int64(30e6)
	delayedACKMax = int64(190e6)
)

// ackedAfter tells what was sent and received within the same tick of the kernel's clock apart: a request that is
// answered is acknowledged by its reply, one that is not is acknowledged alone, some time later. What comes sooner, by
// two round trips and two ticks (tcp_schedule_loss_probe), or at 200 ms and later, can be the reply once more, since
// the peer did not see it acknowledged: that is no data that is new.
func (s *Socket) ackedAfter() bool {
	after := s.SentAgoNs - s.AckedAgoNs
	return after >= delayedACKMin+2*s.RTTNs && after <= delayedACKMax
}

// owners finds the processes of sockets that wait, and notes the runtimes of all who call that were not met before.
func (w *waits) owners(found []Socket) map[uint64]int {
	out := map[uint64]int{}
	w.rounds++
	if len(w.inodes) == 0 || len(found) == 0 && len(w.told) > 0 && w.rounds%ownersEvery != 0 {
		return out // nobody waits, and who calls was noted
	}
	left := len(w.inodes)
	list, err := pids(w.FS)
	if err != nil {
		return out
	}
	for _, pid := range list {
		if left == 0 {
			break
		}
		_ = eachSocketFD(w.FS, pid, func(inode uint64) bool {
			if _, ok := w.inodes[inode]; ok && out[inode] == 0 {
				out[inode] = pid
				left--
				w.runtime(pid)
			}
			return left > 0
		})
	}
	return out
}

func (w *waits) runtime(pid int) {
	if w.told[pid] {
		return
	}
	w.told[pid] = true
	if r, ok := runtimeOf(w.FS, pid); ok {
		w.Sink.Snapshot(recording.Snapshot{
			TimeNs: w.Clock.Now(), Source: recording.SourceHost,
			Subject: recording.ProcessPrefix + strconv.Itoa(pid), Name: recording.SnapshotRuntime,
			Body: recording.Detail(r),
		})
	}
}
