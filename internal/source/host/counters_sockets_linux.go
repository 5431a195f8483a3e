package host

import (
	"os"
	"slices"
	"strconv"

	"slowpath/internal/recording/series"

	"github.com/prometheus/procfs"

	"slowpath/internal/stats"
)

// maxSockets bounds the connections that are read in a round. Beyond it the numbers are those of a sample, and
// sock.sampled says of how many.
const maxSockets = 10_000

// openSockets opens the socket table of the server's namespace.
func (w *watch) openSockets() {
	if w.Port == 0 {
		w.blind("accept queue and connections of the server", "it serves a unix socket", "")
		return
	}
	table, err := w.FS.Sockets(w.Process.PID)
	if err != nil {
		w.blind("sockets of the server", err.Error(), "run as root or with CAP_SYS_ADMIN and CAP_NET_ADMIN")
		return
	}
	if _, ok := table.(procSockets); ok {
		w.blind("round trips and retransmissions of each connection", "sock_diag is not available in the server's "+
			"network namespace", "run as root or with CAP_SYS_ADMIN")
	}
	w.table, w.sizes.table = table, table
	w.tables = []SocketTable{table}
	if !w.Process.OwnNet {
		if own, err := w.FS.Sockets(os.Getpid()); err == nil {
			w.tables = append(w.tables, own)
		}
	}
	w.netSysctls()
}

// listenQueue samples the accept queue: connections that wait for accept, and how many may wait. Of several listeners
// at the port (addresses, SO_REUSEPORT) the fullest counts.
func (w *watch) listenQueue() {
	if w.table == nil {
		return
	}
	w.reads.Add(1)
	queue, backlog, found := uint32(0), uint32(0), false
	err := w.table.Visit(SocketQuery{States: 1 << tcpListen, LocalPort: w.Port}, func(s *Socket) bool {
		if !found || s.RecvQ > queue {
			queue, backlog = s.RecvQ, s.SendQ
		}
		found = true
		return true
	})
	if err != nil || !found {
		return
	}
	w.sample(series.ListenQueue, float64(queue))
	if backlog > 0 { // not known from /proc/PID/net/tcp
		w.sample(series.ListenBacklog, float64(backlog))
	}
}

const (
	// retransmissionTimer is the retransmission timer, and not that of keepalives or of a closed window (tcp(7),
	// idiag_timer, tr of /proc/net/tcp).
	retransmissionTimer = 1
	// unansweredRetransmits: a lost segment is retransmitted once. One that was retransmitted twice in a row without an
	// acknowledgement shows that the path is gone.
	unansweredRetransmits = 2
)

// socketSums adds up the connections of the server.
type socketSums struct {
	count, retransmitting, withInfo int
	retrans                         int64
	// retransmissions in a row of the connections with at least unansweredRetransmits of them
	unanswered                              int64
	recvQ, sendQ, unacked, notsent, limited int64 // largest
	rtts                                    []int64

	onTheWay, connsOnTheWay int64   // segments beyond maxDelayed, and the connections that have some
	leastRTTs               []int64 // of these connections
}

// maxDelayed segments a receiver may have without an acknowledgement (RFC 1122, 4.2.3.2): with more than these on their
// way it is the path that has them, or the receiver's kernel.
const maxDelayed = 2

func (a *socketSums) add(s *Socket) {
	a.count++
	if s.Retransmits > 0 {
		a.retransmitting++
	}
	if s.Timer == retransmissionTimer && s.Retransmits >= unansweredRetransmits {
		a.unanswered += int64(s.Retransmits)
	}
	a.recvQ, a.sendQ = max(a.recvQ, int64(s.RecvQ)), max(a.sendQ, int64(s.SendQ))
	if !s.HasInfo {
		return
	}
	a.withInfo++
	a.retrans += int64(s.TotalRetrans)
	a.unacked, a.notsent = max(a.unacked, int64(s.Unacked)), max(a.notsent, int64(s.NotsentBytes))
	a.limited = max(a.limited, s.RwndLimitedNs)
	if s.Unacked > maxDelayed && s.Retransmits == 0 { // what is sent again is not known to be on its way
		a.onTheWay, a.connsOnTheWay = a.onTheWay+int64(s.Unacked-maxDelayed), a.connsOnTheWay+1
		if s.MinRTTNs > 0 {
			a.leastRTTs = append(a.leastRTTs, s.MinRTTNs)
		}
	}
	if s.RTTNs > 0 {
		a.rtts = append(a.rtts, s.RTTNs)
	}
}

// connections samples the established connections at the server's port.
func (w *watch) connections() {
	if w.table == nil {
		return
	}
	w.reads.Add(1)
	sums := socketSums{rtts: w.rtts[:0]}
	clear(w.peers)
	w.unread = w.unread[:0]
	w.sizes.begin(w.Clock.Now())
	err := w.table.Visit(SocketQuery{States: 1 << tcpEstablished, LocalPort: w.Port, Info: true}, func(s *Socket) bool {
		sums.add(s)
		w.peers[s.Remote] = s.Local
		w.sizes.add(s, w.Node)
		if s.RecvQ > 0 && len(w.unread) < maxUnread {
			w.unread = append(w.unread, s.Remote)
		}
		return sums.count < maxSockets
	})
	w.rtts = sums.rtts
	if err != nil {
		return
	}
	w.sizes.end(w.Sink)
	if sums.count >= maxSockets {
		w.sample(series.SockSampled, float64(sums.count))
		w.blind("all connections of the server", "there are more than "+strconv.Itoa(maxSockets)+": the socket "+
			"numbers are those of a sample", "")
	}
	w.sampleSockets(&sums)
	w.snapshotUnread()
	w.queues()
	w.timeWait()
}

func (w *watch) sampleSockets(a *socketSums) {
	w.sample(series.SockEstablished, float64(a.count))
	w.sample(series.SockRetransmitting, float64(a.retransmitting))
	w.sample(series.SockUnansweredResends, float64(a.unanswered))
	w.sample(series.SockRecvQMax, float64(a.recvQ))
	w.sample(series.SockSendQMax, float64(a.sendQ))
	if a.withInfo == 0 {
		return
	}
	w.sample(series.SockRetransTotal, float64(a.retrans))
	w.sample(series.SockUnackedMax, float64(a.unacked))
	w.sample(series.SockNotsentMax, float64(a.notsent))
	w.sample(series.SockRwndLimitedMax, float64(a.limited))
	w.sample(series.SockSentSegments, float64(w.sizes.sentSum))
	w.sample(series.SockOnTheWay, float64(a.onTheWay))
	w.sample(series.SockConnsOnTheWay, float64(a.connsOnTheWay))
	if len(a.leastRTTs) > 0 {
		slices.Sort(a.leastRTTs)
		w.sample(series.SockLeastRTT, float64(stats.MedianUpper(a.leastRTTs)))
	}
	if len(a.rtts) > 0 {
		slices.Sort(a.rtts)
		w.sample(series.SockRTTMin, float64(a.rtts[0]))
		w.sample(series.SockRTTMedian, float64(stats.MedianUpper(a.rtts)))
	}
}

// queues samples what waits to be sent by the devices of the server's network namespace and of slowpath's own.
func (w *watch) queues() {
	for _, table := range w.tables {
		w.reads.Add(1)
		waiting := map[string]uint32{}
		_ = table.Queues(func(q Queue) bool {
			waiting[q.Device+" "+q.Kind] += q.Bytes
			return len(waiting) < maxDevices
		})
		for name, bytes := range waiting {
			if of := series.QueueBacklog(name); bytes > 0 || w.sampled(of) {
				w.sample(of, float64(bytes))
			}
		}
	}
}

// timeWait samples the sockets in TIME_WAIT of the whole namespace.
func (w *watch) timeWait() {
	w.reads.Add(1)
	proc, err := procfs.NewFS(w.FS.Path(w.proc("")))
	if err != nil {
		return
	}
	stat, err := proc.NetSockstat()
	if err != nil {
		return
	}
	for _, p := range stat.Protocols {
		if p.Protocol == "TCP" && p.TW != nil {
			w.sample(series.SockTimeWait, float64(*p.TW))
		}
	}
}
