package verdict

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
)

// lostTime is the time that callers lost: the excess of slow calls, and what findings know of other time. It is shared
// among the findings, so that each nanosecond counts for one of them at most: of a slow call each nanosecond of each
// state of its account.
type lostTime struct {
	c     *facts.Case
	calls []lostCall // by slow call
	rest  map[restPool]*pool
	cells []map[column]float64 // by finding, what it has of the lost time, in nanoseconds
	// overlaps is by finding, of which others the time is that it claims as well, in nanoseconds.
	overlaps []map[int]float64
	// ns is all of it, and unexplained what no finding has.
	ns, unexplained float64
}

// lostCall is the excess of a slow call that no finding has, and in which states it can have passed.
type lostCall struct {
	left   float64
	states []statePool // nil: not yet known
}

type statePool struct {
	column
	pool
}

// pool is time that no finding has, in nanoseconds, and who took from it.
type pool struct {
	left  float64
	taken []taken
}

type taken struct {
	finding int
	ns      float64
}

// column is where lost time passed: in slow calls a state of the account, or other time by its kind.
type column struct {
	actor, state string
	kind         facts.LossKind
}

// restPool is the time of a kind that callers of a node (nil: of no single one) can have lost outside of slow calls.
type restPool struct {
	node *facts.Node
	kind facts.LossKind
}

// shareLostTime gives each finding its share of the lost time. The first in the list take first: what a root cause
// explains is not explained again by its consequences.
//
// The calls of the probe together stand for one caller, who loses the time in which any of them was slow.
func shareLostTime(c *facts.Case, fs []cause.Finding) lostTime {
	l := lostTime{
		c: c, calls: make([]lostCall, len(c.Ledger.Slow)), rest: map[restPool]*pool{},
		cells: make([]map[column]float64, len(fs)), overlaps: make([]map[int]float64, len(fs)),
	}
	for i, a := range c.Ledger.Slow {
		l.calls[i].left = float64(a.ExcessNs)
	}
	inSlowCalls := float64(c.Ledger.ExcessNs)
	for i, f := range fs {
		l.cells[i], l.overlaps[i] = map[column]float64{}, map[int]float64{}
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
		inCalls, outside := l.take(i, f)
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
			of := restPool{cl.Node, kind}
			if l.rest[of] == nil {
				l.rest[of] = &pool{}
				if cl.Node != nil {
					l.rest[of].left = cl.Node.LostNs(kind)
				}
			}
			l.rest[of].left = max(l.rest[of].left, ns)
		}
	}
}

// take takes what finding i claims and no other has, in nanoseconds.
func (l *lostTime) take(i int, f cause.Finding) (inCalls, outside float64) {
	for _, cl := range f.Claims {
		for _, call := range cl.Calls {
			inCalls += l.takeOfCall(i, call)
		}
		for _, loss := range cl.Losses {
			p := l.rest[restPool{cl.Node, loss.Kind}]
			ns := min(loss.Ns, p.left)
			l.overlap(i, p, loss.Ns-ns, 1)
			p.take(i, ns)
			l.cells[i][column{kind: loss.Kind}] += ns
			outside += ns
		}
	}
	return inCalls, outside
}

// takeOfCall takes time of a slow call, in the states of which it is claimed.
func (l *lostTime) takeOfCall(i int, call facts.CallNs) float64 {
	of, weight := l.call(call.Index), l.c.Ledger.Slow[call.Index].Weight
	claims := claimsOn(of.states, call)
	free, missing := make([]float64, len(claims)), make([]float64, len(claims))
	for k, claimed := range claims {
		free[k] = min(claimed, of.states[k].left)
		missing[k] = claimed - free[k]
	}
	ns := min(sum(free), call.Ns, of.left)
	for k := range of.states {
		if s := &of.states[k]; free[k] > 0 {
			part := ns * free[k] / sum(free)
			s.take(i, part)
			l.cells[i][s.column] += part * weight
		}
		if missing[k] > 0 {
			l.overlap(i, &of.states[k].pool, (call.Ns-ns)*missing[k]/sum(missing), weight)
		}
	}
	of.left = max(of.left-ns, 0)
	return ns * weight
}

// claimsOn is how much of each state a claim may take, in nanoseconds. One that does not say in which states the time
// passed may take what is left of each.
func claimsOn(states []statePool, call facts.CallNs) []float64 {
	out := make([]float64, len(states))
	for k, s := range states {
		if len(call.Times) == 0 {
			out[k] = s.left
		}
		for _, t := range call.Times {
			if s.actor == t.Actor && s.state == t.State {
				out[k] += t.Ns
			}
		}
	}
	return out
}

// call is a slow call with its states. slowpath's own wait for a CPU is none of them: nobody lost it.
func (l *lostTime) call(i int) *lostCall {
	of := &l.calls[i]
	if of.states != nil {
		return of
	}
	a := &l.c.Ledger.Slow[i]
	rest, ownDelay := float64(a.ExcessNs), a.OwnDelayNs
	for _, s := range l.c.Ledger.Whole(i) {
		ns := s.Ns()
		if s.Actor == account.Client && s.State == account.RunQueue {
			own := min(ns, ownDelay)
			ns, ownDelay = ns-own, ownDelay-own
		}
		of.add(column{actor: s.Actor, state: s.State}, float64(ns))
		rest -= float64(ns)
	}
	if rest > 0 {
		of.add(column{actor: account.Nobody, state: account.Unexplained}, rest)
	}
	return of
}

func (c *lostCall) add(to column, ns float64) {
	for k := range c.states {
		if c.states[k].column == to {
			c.states[k].left += ns
			return
		}
	}
	c.states = append(c.states, statePool{to, pool{left: ns}})
}

func (p *pool) take(finding int, ns float64) {
	p.left = max(p.left-ns, 0) // the parts of a claim, rounded, can be a little more than what was left
	if n := len(p.taken) - 1; n >= 0 && p.taken[n].finding == finding {
		p.taken[n].ns += ns
	} else if ns > 0 {
		p.taken = append(p.taken, taken{finding, ns})
	}
}

// overlap notes that finding i claims ns more of a pool than is left: that is of those who took of it.
func (l *lostTime) overlap(i int, p *pool, ns, weight float64) {
	all := 0.0
	for _, t := range p.taken {
		all += t.ns
	}
	for _, t := range p.taken {
		if t.finding != i {
			l.overlaps[i][t.finding] += min(ns, all) * t.ns / max(all, 1) * weight
		}
	}
}

// unclaimed is where the time passed that no finding has.
func (l *lostTime) unclaimed() map[column]float64 {
	out := map[column]float64{}
	for i, a := range l.c.Ledger.Slow {
		if a.IsPart() || l.calls[i].left <= 0 {
			continue
		}
		of, all := l.call(i), 0.0
		for _, s := range of.states {
			all += s.left
		}
		for _, s := range of.states {
			out[s.column] += of.left * s.left / max(all, 1) * a.Weight
		}
	}
	return out
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
