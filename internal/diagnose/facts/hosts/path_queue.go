package hosts

import (
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// PathQueue is what the hosts at both ends show of packets that wait on the path.
type PathQueue struct {
	// WaitNs is for how long a segment of a reply was on its way and not acknowledged, on average, beyond LeastNs, the
	// least round trip of the same connections: their number on the way by how many were sent (Little's law). Only
	// segments count that a receiver must acknowledge at once. 0: there were too few.
	WaitNs, LeastNs int64
	// Segments were sent, and ConnsOnTheWay connections had some on the way, on average.
	Segments, ConnsOnTheWay float64
	// ConnectNs is the median of TCP connects that took longer than DistanceNs, the least round trip of the path, by
	// what anybody notices. 0: they did not.
	ConnectNs, DistanceNs int64
	// Device is the network device of this host, with its queueing discipline, in which most bytes wait to be sent:
	// DeviceBytes on average. Empty: none has a queue for most of the time.
	Device      string
	DeviceBytes float64
}

// PathQueueOf is that of the node's replies.
func PathQueueOf(n *facts.Node) (q PathQueue) {
	sent := n.Series(series.SockSentSegments)
	onTheWay := meanAt(n.Series(series.SockOnTheWay), sent)
	q.Segments = sent.Growth()
	// A segment that never arrives looks as if it were on its way, until its timer expires.
	enough := len(sent) > degree.Several && q.Segments >= max(degree.Many, degree.Several*onTheWay)
	if enough && len(SizeLimits(n)) == 0 {
		seconds := float64(sent[len(sent)-1].TimeNs-sent[0].TimeNs) / 1e9
		q.ConnsOnTheWay = meanAt(n.Series(series.SockConnsOnTheWay), sent)
		least, _ := n.Series(series.SockLeastRTT).Min()
		q.LeastNs = int64(least)
		q.WaitNs = max(int64(onTheWay*seconds/q.Segments*1e9)-q.LeastNs, 0)
	}
	if p, ok := n.Ledger.Path(n.Address, "kept"); ok && p.DistanceNs > 0 && p.ConnectNs-p.DistanceNs >= n.NoticedNs() {
		q.ConnectNs, q.DistanceNs = p.ConnectNs, p.DistanceNs
	}
	for _, name := range n.Rec.Names(recording.SourceHost, n.Address, series.QueueBacklogPrefix) {
		device := strings.TrimSuffix(strings.TrimPrefix(name, series.QueueBacklogPrefix), ".backlog_bytes")
		backlog := n.Series(series.QueueBacklog(device))
		if mean := meanAt(backlog, sent); mean > q.DeviceBytes && shareAbove(backlog, sent) >= degree.Most {
			q.Device, q.DeviceBytes = device, mean
		}
	}
	return q
}

// KernelKnowsPath reports whether the kernel's least round trips of callers' connections to the node were read.
func KernelKnowsPath(n *facts.Node) bool {
	return len(n.Series(series.CallersLeastRTT)) > 0 || AcknowledgementsOf(n).Conns > 0
}

// meanAt is the mean of a series at the times of another.
func meanAt(s, times recording.Series) (mean float64) {
	for _, at := range times {
		v, _ := s.At(at.TimeNs)
		mean += v / float64(len(times))
	}
	return mean
}

// shareAbove is at which share of the times of another series a series is above 0.
func shareAbove(s, times recording.Series) float64 {
	above := 0
	for _, at := range times {
		if v, _ := s.At(at.TimeNs); v > 0 {
			above++
		}
	}
	return float64(above) / float64(max(len(times), 1))
}
