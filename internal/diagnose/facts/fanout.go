package facts

import (
	"math"

	"slowpath/internal/recording"
)

// What the samples of other nodes must show. A sample is taken from the connections of a process while a slow call of
// it waits.
const (
	// simultaneous is the part of a slow call's wait within which the others were sent: so small that calls which have
	// nothing to do with each other seldom come so close and nothing after them, whatever their rate; see byChance.
	maxSendGap = 0.1
	// FanoutSamples is how many looks make a pattern.
	MinFanoutSamples = 3
)

// fanoutSample is a sample of a slow call that waited.
type fanoutSample struct {
	recording.BesideDetail
	waitedNs int64
}

// together says whether another node was sent to at the same moment, answered while the slow call waited, and asked
// nothing more. The exchange must reach beyond the send of the slow call: a caller that asks one node after the other
// has its reply before it sends the next.
func (g fanoutSample) concurrent(o recording.Beside) bool {
	near := math.Abs(float64(o.AfterNs)) <= maxSendGap*float64(g.waitedNs)
	return !o.Waiting && near && o.AfterNs+o.TookNs > 0 && o.TookNs <= g.waitedNs/2
}

// byChance is the most likely that an exchange of calls that have nothing to do with each other looks like that, at
// whatever rate they are sent: the last send of a Poisson process fell within w of the moment, and none came in the
// time since, a. It is greatest at the rate ln((a+w)/a)/w.
func (g fanoutSample) byChance(o recording.Beside) float64 {
	m := maxSendGap * float64(g.waitedNs)
	w, a := m+min(float64(o.TookNs), m), float64(g.waitedNs)-m
	return w / (a + w) * math.Pow(a/(a+w), a/w)
}

// Fanout is what the samples of the slow calls of one process to one node show.
type Fanout struct {
	Process     string
	Samples     int
	WithOthers  int            // samples in which at least one other node was asked together with the slow call
	ByChance    float64        // samples that would be so by chance
	Nodes       map[string]int // asked together with slow calls
	MaxNodes    int            // nodes asked together with one call
	MaxReplyNs  int64          // longest reply of those
	AlsoWaiting int            // exchanges that were sent at the moment and waited as well
}

// Fanouts sorts the samples of slow calls to this node by the process that waited. Calls about the cluster itself go to
// all nodes by their nature.
func (n *Node) Fanouts() map[string]*Fanout {
	out := map[string]*Fanout{}
	for _, e := range n.Events(recording.SourceTap, recording.KindBeside) {
		g := fanoutSample{recording.DetailOf[recording.BesideDetail](e), e.DurationNs}
		if g.Process == "" || g.waitedNs <= 0 || IsAdminCommand(g.Op) {
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
		case o.Waiting && math.Abs(float64(o.AfterNs)) <= maxSendGap*float64(g.waitedNs):
			f.AlsoWaiting++
		}
	}
	f.ByChance += min(chance, 1)
	f.MaxNodes = max(f.MaxNodes, with+1)
	if with > 0 {
		f.WithOthers++
	}
}

// Share is the part of the waits that was one of a fan-out, without what chance gives; 0 where that could be all of it.
func (f *Fanout) Share() float64 {
	beyond := float64(f.WithOthers) - f.ByChance
	if f.WithOthers < MinFanoutSamples || beyond < 3*math.Sqrt(f.ByChance) || float64(f.Samples) <= f.ByChance {
		return 0
	}
	return beyond / (float64(f.Samples) - f.ByChance)
}
