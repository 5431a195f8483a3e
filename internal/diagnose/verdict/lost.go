package verdict

import (
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
)

// lostTime is the time that callers lost: the excess of slow calls, and what findings know of other time. It is shared
// among the findings, so that each nanosecond counts for one of them at most.
type lostTime struct {
	c     *facts.Case
	calls []float64 // per slow call, the excess that no finding has, in nanoseconds
	rest  map[lostPool]float64
	// ns is all of it, and unexplained what no finding has.
	ns, unexplained float64
}

// lostPool is the time of a kind that callers of a node (nil: of no single one) can have lost outside of slow calls.
type lostPool struct {
	node *facts.Node
	kind facts.LossKind
}

// shareLostTime gives each finding its share of the lost time. The first in the list take first: what a root cause
// explains is not explained again by its consequences.
//
// The calls of the probe together stand for one caller, who loses the time in which any of them was slow.
func shareLostTime(c *facts.Case, fs []cause.Finding) lostTime {
	l := lostTime{c: c, calls: make([]float64, len(c.Ledger.Slow)), rest: map[lostPool]float64{}}
	for i, a := range c.Ledger.Slow {
		l.calls[i] = float64(a.ExcessNs)
	}
	inSlowCalls := float64(c.Ledger.ExcessNs)
	for _, f := range fs {
		l.widen(f)
	}
	taken := make([]float64, len(fs))
	own := make([]float64, len(fs))
	l.ns = inSlowCalls
	claimed := 0.0
	for i, f := range fs {
		if own[i] = l.all(f); f.Steady && sum(taken[:i]) >= facts.MinShare*(sum(taken[:i])+own[i]) {
			continue
		}
		inCalls, outside := l.take(f)
		taken[i] = inCalls + outside
		l.ns += outside
		claimed += inCalls
	}
	l.unexplained = max(inSlowCalls-claimed, 0)
	for i := range fs {
		fs[i].ExcessShare = min(1, taken[i]/max(l.ns, 1))
		fs[i].ClaimedShare = min(1, own[i]/max(l.ns, 1))
	}
	return l
}

func sum(vs []float64) (all float64) {
	for _, v := range vs {
		all += v
	}
	return all
}

// widen makes the pools as large as what is known of them, and as the largest claim.
func (l *lostTime) widen(f cause.Finding) {
	for _, cl := range f.Claims {
		sums := map[facts.LossKind]float64{}
		for _, loss := range cl.Losses {
			sums[loss.Kind] += loss.Ns
		}
		for kind, ns := range sums {
			pool := lostPool{cl.Node, kind}
			if _, seen := l.rest[pool]; !seen && cl.Node != nil {
				l.rest[pool] = cl.Node.LostNs(kind)
			}
			l.rest[pool] = max(l.rest[pool], ns)
		}
	}
}

// take takes what a finding claims and no other has, in nanoseconds.
func (l *lostTime) take(f cause.Finding) (inCalls, outside float64) {
	for _, cl := range f.Claims {
		for _, call := range cl.Calls {
			ns := min(call.Ns, l.calls[call.Index])
			l.calls[call.Index] -= ns
			inCalls += ns * l.c.Ledger.Slow[call.Index].Weight
		}
		for _, loss := range cl.Losses {
			pool := lostPool{cl.Node, loss.Kind}
			ns := min(loss.Ns, l.rest[pool])
			l.rest[pool] -= ns
			outside += ns
		}
	}
	return inCalls, outside
}

// all is what a finding claims, whoever else does, in nanoseconds.
func (l *lostTime) all(f cause.Finding) (ns float64) {
	for _, cl := range f.Claims {
		for _, call := range cl.Calls {
			ns += call.Ns * l.c.Ledger.Slow[call.Index].Weight
		}
		for _, loss := range cl.Losses {
			ns += loss.Ns
		}
	}
	return ns
}
