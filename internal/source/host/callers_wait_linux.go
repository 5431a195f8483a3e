package host

import (
	"context"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// CallersOptions are for a watch of the processes that call servers from this host, wherever those servers are.
type CallersOptions struct {
	FS    FS // this host when nil
	Clock clock.Clock
	Sink  recording.Sink
	Nodes map[netip.AddrPort]string // addresses of servers, with their names in the recording
	Every time.Duration             // 2 s when 0
	// CostShare bounds the CPU time of the rounds to one part in so many of a core, but for longestPause at most times
	// CostShare/1000; 0: they are as frequent as Every says.
	CostShare int64
	Pace      *clock.Pace
	Found     func(pid int) // called once with each process that calls; nil: nobody asks
}

const (
	callersEvery = 2 * time.Second
	// minRecordedWait: shorter waits are ordinary calls.
	minRecordedWait = time.Second
	maxSpaces       = 64 // network namespaces whose sockets are read
	// newCallersEvery is after how many rounds the descriptors of all processes are searched for new callers, which is
	// the expensive part.
	newCallersEvery = 5
)

// callerWatch watches the sockets over which servers are called from this host: on which of them a request waits for
// its reply, and for how long.
type callerWatch struct {
	CallersOptions
	spaces   []SocketTable
	known    map[netip.AddrPort]bool // connections that were recorded as waiting
	recorded map[int]bool            // processes whose runtime was recorded
	inodes   map[uint64]netip.AddrPort
	rounds   int
	sizes    []segmentSizes   // of each of spaces
	least    map[string]int64 // least round trip to each node, in nanoseconds
}

// WatchCallers records, until the context ends, who calls the servers from this host, and which of their connections
// wait for a reply. The kernel keeps for each socket when it last sent and when it last received data: one that sent
// last waits for a reply. So a wait is known from its begin, even where that was long before the watch.
func WatchCallers(ctx context.Context, o CallersOptions) error {
	if o.FS == nil {
		o.FS = Root{}
	}
	if o.Every <= 0 {
		o.Every = callersEvery
	}
	w := &callerWatch{
		CallersOptions: o, known: map[netip.AddrPort]bool{}, recorded: map[int]bool{},
		least: map[string]int64{},
	}
	defer w.close()
	if err := w.open(); err != nil {
		return err
	}
	for {
		for pause := w.pacedRound(); pause > 0; {
			step := pause
			if w.followsAny() {
				step = min(pause, followEvery*time.Duration(w.Pace.Times()))
			}
			timer := time.NewTimer(step)
			select {
			case <-ctx.Done():
				timer.Stop()
				w.round() // once more, for waits that began since the last round
				return nil
			case <-timer.C:
			}
			pause -= step
			for i := range w.sizes {
				w.sizes[i].follow(w.Clock.Now())
			}
		}
	}
}

// pacedRound makes a round, and gives the pause until the next one. A dump of all sockets takes 2 ms on a large host,
// whose table of them is large, too.
func (w *callerWatch) pacedRound() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadCPU()
	w.round()
	longest := longestPause * time.Duration(max(1, w.CostShare/costShare))
	pause := max(w.Every, min(time.Duration((threadCPU()-begin)*w.CostShare), longest))
	return pause * time.Duration(w.Pace.Times())
}

// open opens the socket tables of all namespaces. Tables without sock_diag have no times and are left out.
func (w *callerWatch) open() error {
	tables, err := openTables(w.FS)
	for _, table := range tables {
		if _, ok := table.(procSockets); ok {
			table.Close()
			continue
		}
		w.spaces = append(w.spaces, table)
		w.sizes = append(w.sizes, segmentSizes{table: table, from: recording.Client})
	}
	return err
}

func (w *callerWatch) close() {
	for _, s := range w.spaces {
		s.Close()
	}
}

func (w *callerWatch) round() {
	waiting := map[netip.AddrPort]bool{}
	w.inodes = map[uint64]netip.AddrPort{}
	var found []Socket
	for i, table := range w.spaces {
		sizes := &w.sizes[i]
		sizes.begin(w.Clock.Now())
		for _, port := range portsOf(w.Nodes) {
			_ = table.Visit(SocketQuery{States: 1 << tcpEstablished, RemotePort: port, Info: true},
				func(s *Socket) bool {
					node, ok := w.Nodes[unmapped(s.Remote)]
					if !ok || s.Inode == 0 {
						return true
					}
					w.leastRTT(node, s.MinRTTNs)
					sizes.add(s, node)
					w.inodes[s.Inode] = unmapped(s.Remote)
					if s.waitNs() >= int64(minRecordedWait) {
						found = append(found, *s)
					}
					return len(w.inodes) < maxInodes
				})
		}
		sizes.end(w.Sink)
	}
	owners := w.owners(found)
	for _, s := range found {
		local := unmapped(s.Local)
		if owners[s.Inode] == os.Getpid() {
			continue // slowpath's own
		}
		waiting[local] = true
		w.record(&s, local, owners[s.Inode])
	}
	for local := range w.known {
		if !waiting[local] {
			delete(w.known, local)
			w.sample(local, series.ConnWaiting, 0)
		}
	}
}

// followsAny reports whether a connection sends something again.
func (w *callerWatch) followsAny() bool {
	return slices.ContainsFunc(w.sizes, func(t segmentSizes) bool { return len(t.again) > 0 })
}

// leastRTT records the least round trip to a node, as the kernel knows it of the last minutes
// (net.ipv4.tcp_min_rtt_wlen): no process takes part in it, and a queue on the path only where it was never empty.
func (w *callerWatch) leastRTT(node string, ns int64) {
	if least, ok := w.least[node]; ns <= 0 || ok && least <= ns {
		return
	}
	w.least[node] = ns
	w.Sink.Sample(recording.Sample{
		TimeNs: w.Clock.Now(), Source: series.CallersLeastRTT.Source, Subject: series.CallersLeastRTT.About(node),
		Name: series.CallersLeastRTT.Name, Value: float64(ns),
	})
}

func (w *callerWatch) record(s *Socket, local netip.AddrPort, pid int) {
	if !w.known[local] {
		w.known[local] = true
		body := recording.PendingCaller{Node: w.Nodes[unmapped(s.Remote)], PID: pid}
		if pid != 0 {
			if p, err := describe(w.FS, pid, Query{}, 0); err == nil {
				body.Comm = p.Comm
			}
		}
		w.Sink.Snapshot(recording.Snapshot{
			TimeNs: w.Clock.Now(), Source: recording.SourceHost,
			Subject: recording.ConnPrefix + local.String(), Name: recording.SnapshotPendingCaller,
			Body: recording.Detail(body),
		})
	}
	w.sample(local, series.ConnWaiting, float64(s.waitNs()))
	w.sample(local, series.ConnResends, float64(s.Backoff))
}

func (w *callerWatch) sample(local netip.AddrPort, of series.Name, v float64) {
	w.Sink.Sample(recording.Sample{
		TimeNs: w.Clock.Now(), Source: of.Source, Subject: of.About(local.String()), Name: of.Name, Value: v,
	})
}

// waitNs is for how long a socket has waited for an answer to what it sent; 0 where it does not wait. A retransmitted
// segment counts from its first transmission: the timeout doubles each time, so it is as long as all of the waits
// before it together, plus the first timeout.
func (s *Socket) waitNs() int64 {
	if !s.HasInfo || s.DataSegsOut == 0 || s.ReceivedAgoNs < s.SentAgoNs {
		return 0
	}
	if s.ReceivedAgoNs == s.SentAgoNs && s.DataSegsIn > 0 && s.Unacked == 0 && !s.ackedAfter() {
		return 0
	}
	return s.resendingNs()
}

// resendingNs is for how long the segment has been sent that is in flight.
func (s *Socket) resendingNs() int64 { return s.SentAgoNs + s.RTONs - s.RTONs>>min(s.Backoff, 32) }

// When a peer acknowledges data that it does not answer: after TCP_DELACK_MIN (40 ms) at the earliest and
// TCP_DELACK_MAX (200 ms) at the latest, give or take a tick of the kernel's clock.
const (
	delayedACKMin = int64(30e6)
	delayedACKMax = int64(190e6)
)

// ackedAfter reports whether the last acknowledgement was a delayed one without data. It decides where data was sent
// and received within the same tick of the kernel's clock: a request that is answered is acknowledged by its reply, one
// that is not is acknowledged alone, some time later. An acknowledgement sooner than that, within two round trips and
// two ticks (tcp_schedule_loss_probe), or after 200 ms, can be the same reply retransmitted, which is no new data.
func (s *Socket) ackedAfter() bool {
	after := s.SentAgoNs - s.AckedAgoNs
	return after >= delayedACKMin+2*s.RTTNs && after <= delayedACKMax
}

// owners finds the processes of sockets that wait, and records the runtimes of callers that are new.
func (w *callerWatch) owners(found []Socket) map[uint64]int {
	out := map[uint64]int{}
	w.rounds++
	if len(w.inodes) == 0 || len(found) == 0 && len(w.recorded) > 0 && w.rounds%newCallersEvery != 0 {
		return out // no call waits, and the callers were recorded
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

func (w *callerWatch) runtime(pid int) {
	if w.recorded[pid] {
		return
	}
	w.recorded[pid] = true
	if w.Found != nil && pid != os.Getpid() {
		w.Found(pid)
	}
	if r, ok := runtimeOf(w.FS, pid); ok {
		w.Sink.Snapshot(recording.Snapshot{
			TimeNs: w.Clock.Now(), Source: recording.SourceHost,
			Subject: recording.ProcessPrefix + strconv.Itoa(pid), Name: recording.SnapshotRuntime,
			Body: recording.Detail(r),
		})
	}
}
