package nodes

import (
	"math"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// maxByChance is the largest probability of as many samples by chance (Poisson).
// Bound: statistics, one process in a thousand.
const maxByChance = 0.001

// fanoutSample is a sample of a process's connections, taken while a slow call of it waited.
type fanoutSample struct {
	recording.OtherNodesDetail
	waitedNs int64
}

// near reports whether another call was sent within so small a part of the slow call's wait that unrelated calls seldom
// come so close with none after them, at whatever rate; byChance says how seldom, and Share subtracts that.
func (g fanoutSample) near(o recording.OtherNodeCall) bool {
	return math.Abs(float64(o.SentAfterNs)) <= degree.Part*float64(g.waitedNs)
}

// concurrent reports whether another node was sent to at the same time, answered while the slow call waited, and was
// sent nothing more. The exchange must reach beyond the send of the slow call: a caller that asks one node after the
// other has its reply before it sends the next.
func (g fanoutSample) concurrent(o recording.OtherNodeCall) bool {
	return !o.Waiting && g.near(o) && o.SentAfterNs+o.TookNs > 0 && o.TookNs <= g.waitedNs/2
}

// byChance is the largest probability that an unrelated exchange looks like that, at whatever rate calls are sent: the
// last send of a Poisson process fell within w of the slow call's, and none came in the time a since. It is largest at
// the rate ln((a+w)/a)/w.
func (g fanoutSample) byChance(o recording.OtherNodeCall) float64 {
	m := degree.Part * float64(g.waitedNs)
	w, a := m+min(float64(o.TookNs), m), float64(g.waitedNs)-m
	return w / (a + w) * math.Pow(a/(a+w), a/w)
}

// Fanout is what the samples of the slow calls of one process to one node show.
type Fanout struct {
	// Process is the process that waited.
	Process string
	// Samples is the number of samples.
	Samples int
	// WithOthers is the number of samples in which at least one other node was asked together with the slow call.
	WithOthers int
	// ByChance is how many samples would look so by chance.
	ByChance float64
	// Nodes is how often each other node was asked together with a slow call.
	Nodes map[string]int
	// MaxNodes is the largest number of nodes that were asked together.
	MaxNodes int
	// MaxReplyNs is the longest time that another node took to reply, in nanoseconds.
	MaxReplyNs int64
	// AlsoWaiting is the number of exchanges with other nodes that were sent at the same time and waited as well.
	AlsoWaiting int
}

// Fanouts are the samples of slow calls to this node by the process that waited, without calls about the cluster
// itself, which go to all nodes by their nature.
func Fanouts(n *facts.Node) map[string]*Fanout {
	out := map[string]*Fanout{}
	for _, e := range n.Events(recording.SourceTap, recording.KindOtherNodes) {
		g := fanoutSample{recording.DetailOf[recording.OtherNodesDetail](e), e.DurationNs}
		if g.Process == "" || g.waitedNs <= 0 || facts.IsAdminCommand(g.Op) {
			continue
		}
		f := out[g.Process]
		if f == nil {
			f = &Fanout{Process: g.Process, Nodes: map[string]int{}}
			out[g.Process] = f
		}
		f.take(g)
	}
	return out
}

// take adds a sample.
func (f *Fanout) take(g fanoutSample) {
	f.Samples++
	with, chance := 0, 0.0
	for _, o := range g.Others {
		chance += g.byChance(o)
		switch {
		case g.concurrent(o):
			with++
			f.Nodes[o.Node]++
			f.MaxReplyNs = max(f.MaxReplyNs, o.TookNs)
		case o.Waiting && g.near(o):
			f.AlsoWaiting++
		}
	}
	f.ByChance += min(chance, 1)
	f.MaxNodes = max(f.MaxNodes, with+1)
	if with > 0 {
		f.WithOthers++
	}
}

// Share is the share of the waits that belong to a fan-out, without those by chance; 0 where chance could be all of it.
// Several samples at least: unrelated calls may come in bursts, of which byChance knows nothing.
func (f *Fanout) Share() float64 {
	beyond := float64(f.WithOthers) - f.ByChance
	if f.WithOthers < degree.Several || stats.PoissonTail(f.WithOthers, f.ByChance) > maxByChance ||
		float64(f.Samples) <= f.ByChance {
		return 0
	}
	return beyond / (float64(f.Samples) - f.ByChance)
}
