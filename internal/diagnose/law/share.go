package law

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// Claim is time that a cause explains at the callers of a node (nil: of no single one).
type Claim struct {
	Node *facts.Node
	// Calls is what it explains of slow calls, Losses of other time.
	Calls  []facts.CallNs
	Losses []facts.Loss
}

// Claimant is a cause with all that it claims.
type Claimant struct {
	ID     string
	Grade  Grade
	Claims []Claim
	// After are the ids of the causes of which it can be a mere consequence.
	After []string
}

// Shares is who got what of the lost time, in nanoseconds.
type Shares struct {
	// Ns is all lost time: that of slow calls, and what claims showed beside it.
	Ns float64
	// Cells are by claimant what it got, Alone what it would have got without the others.
	Cells []map[Column]float64
	Alone []float64
	// Late are by claimant the slow calls that it made late by as much as anybody notices, of users and of others.
	Late []Late
	// Overlaps are by claimant what it claims as well, and others got.
	Overlaps []map[int]float64
	// Unclaimed is what nobody claims.
	Unclaimed map[Column]float64
}

// Late is how many calls something made late by facts.Case.NoticedNs or more, and the most that one lost by it, in
// nanoseconds.
type Late struct {
	Users, Others int
	MaxNs         float64
}

// Got is all that a claimant got, in nanoseconds.
func (s Shares) Got(i int) (ns float64) {
	for _, v := range s.Cells[i] {
		ns += v
	}
	return ns
}

// sharing gives lost time to claimants.
type sharing struct {
	*Lost
	Shares
	of    []Claimant
	order [][]int // claimants that are known equally well, the best first
}

// Share gives each piece of the lost time to the claimants.
func (l *Lost) Share(of []Claimant) Shares {
	s := sharing{l, Shares{
		Ns: l.Ns(), Cells: make([]map[Column]float64, len(of)), Overlaps: make([]map[int]float64, len(of)),
		Alone: make([]float64, len(of)), Late: make([]Late, len(of)), Unclaimed: map[Column]float64{},
	}, of, order(of)}
	for i := range of {
		s.Cells[i], s.Overlaps[i] = map[Column]float64{}, map[int]float64{}
	}
	byCall := map[int][]part{}
	for i, c := range of {
		for _, cl := range c.Claims {
			for _, call := range cl.Calls {
				byCall[call.Index] = append(byCall[call.Index], l.parts(i, call)...)
			}
		}
	}
	for i := range l.c.Ledger.Slow {
		s.call(i, byCall[i])
	}
	s.losses()
	return s.Shares
}

// order are the claimants by grade, and among equals those first that are consequences of none of the others.
func order(of []Claimant) (groups [][]int) {
	depth := make([]int, len(of))
	for range of { // a chain has no more steps
		for i, c := range of {
			for k, root := range of {
				if k != i && slices.Contains(c.After, root.ID) {
					depth[i] = max(depth[i], min(depth[k]+1, len(of)))
				}
			}
		}
	}
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	better := func(a, b int) int {
		return cmp.Or(cmp.Compare(of[a].Grade.rank(), of[b].Grade.rank()), cmp.Compare(depth[a], depth[b]))
	}
	slices.SortStableFunc(all, better)
	for _, i := range all {
		if k := len(groups) - 1; k >= 0 && better(groups[k][0], i) == 0 {
			groups[k] = append(groups[k], i)
		} else {
			groups = append(groups, []int{i})
		}
	}
	return groups
}

// part is a stretch of a slow call of which a claimant claims a share.
type part struct {
	claimant     int
	fromNs, toNs int64
	actor, state string // of which state; empty: of any
	share        float64
}

// parts are what a claim says of a slow call.
func (l *Lost) parts(claimant int, c facts.CallNs) (out []part) {
	a := &l.c.Ledger.Slow[c.Index]
	if len(c.Times) == 0 {
		return []part{{
			claimant: claimant, fromNs: a.Call.IntendedNs, toNs: a.Call.EndNs,
			share: min(1, c.Ns/float64(max(a.ExcessNs, 1))),
		}}
	}
	for _, t := range c.Times {
		p := part{claimant, t.FromNs, t.ToNs, t.Actor, t.State, 0}
		length := float64(t.ToNs - t.FromNs)
		if t.ToNs == 0 {
			p.fromNs, p.toNs, length = a.Call.IntendedNs, a.Call.EndNs, l.inState(c.Index, t.Actor, t.State)
		}
		p.share = min(1, t.Ns/max(length, 1))
		out = append(out, p)
	}
	return out
}

// inState is the time of a slow call in a state, in nanoseconds.
func (l *Lost) inState(i int, actor, state string) (ns float64) {
	for _, p := range l.call(i) {
		if p.Actor == actor && p.State == state {
			ns += float64(p.toNs - p.fromNs)
		}
	}
	return ns
}

// call gives away what was lost in a slow call.
func (s *sharing) call(i int, claimed []part) {
	a := &s.c.Ledger.Slow[i]
	if a.IsPart() {
		return
	}
	pieces := s.Lost.call(i)
	at := cuts(pieces, claimed)
	n, byClaimant := 0, map[int]float64{}
	for k := 1; k < len(at); k++ {
		from, to := at[k-1], at[k]
		for n < len(pieces) && pieces[n].toNs <= from {
			n++
		}
		if n == len(pieces) || pieces[n].fromNs > from {
			continue
		}
		p, wanted := pieces[n], map[int]float64{}
		for _, c := range claimed {
			if c.fromNs <= from && to <= c.toNs && (c.state == "" || c.actor == p.Actor && c.state == p.State) {
				wanted[c.claimant] = min(wanted[c.claimant]+c.share, 1)
			}
		}
		left, got := s.give(p.Column, p.in(from, to)*a.Weight, wanted)
		s.Unclaimed[p.Column] += left
		for i, ns := range got {
			byClaimant[i] += ns / max(a.Weight, 1e-9)
		}
	}
	for i, ns := range byClaimant {
		s.Late[i].add(ns, a.Call.Source == recording.SourceTap, s.c.NoticedNs())
	}
}

// add counts a call that lost some nanoseconds.
func (l *Late) add(ns float64, ofUser bool, noticedNs int64) {
	l.MaxNs = max(l.MaxNs, ns)
	switch {
	case ns < float64(noticedNs):
	case ofUser:
		l.Users++
	default:
		l.Others++
	}
}

// give gives away time of which claimants want some shares. It returns what nobody wants, and what each got.
func (s *sharing) give(to Column, ns float64, wanted map[int]float64) (left float64, got map[int]float64) {
	left, got = ns, map[int]float64{}
	for _, group := range s.order {
		all := 0.0
		for _, i := range group {
			all += wanted[i] * ns
		}
		part := min(1, left/max(all, 1e-9))
		for _, i := range group {
			if wanted[i] > 0 {
				got[i] = wanted[i] * ns * part
				s.Alone[i] += wanted[i] * ns
				s.Cells[i][to] += got[i]
			}
		}
		left = max(left-all, 0)
	}
	s.overlap(ns, wanted, got)
	return left, got
}

// overlap notes what claimants wanted that others got.
func (s *sharing) overlap(ns float64, wanted, got map[int]float64) {
	for i, share := range wanted {
		missing, others := share*ns-got[i], 0.0
		for k := range got {
			if k != i {
				others += got[k]
			}
		}
		for k := range got {
			if k != i && missing > 0 && others > 0 {
				s.Overlaps[i][k] += min(missing, others) * got[k] / others
			}
		}
	}
}

// pool is the time of a kind that callers of a node lost outside of slow calls.
type pool struct {
	node *facts.Node
	kind facts.LossKind
}

// losses gives away what was lost outside of slow calls: of each kind as much as was counted, or as a claimant shows.
// What nobody notices is no loss.
func (s *sharing) losses() {
	claimed := map[pool]map[int]float64{}
	var pools []pool
	for i, c := range s.of {
		for _, cl := range c.Claims {
			for _, loss := range cl.Losses {
				if loss.Kind == facts.LostInCalls && cl.Node != nil { // calls cannot lose more than they took
					loss.Ns = min(loss.Ns, connection.LostNs(cl.Node, loss.Kind))
					loss.EachNs = min(loss.EachNs, cl.Node.MeanCallNs())
				}
				if !s.c.LossNoticed(loss) {
					continue
				}
				p := pool{cl.Node, loss.Kind}
				if claimed[p] == nil {
					claimed[p], pools = map[int]float64{}, append(pools, p)
				}
				claimed[p][i] += loss.Ns
			}
		}
	}
	for _, p := range pools {
		size := 1.0
		if p.node != nil {
			size = max(size, connection.LostNs(p.node, p.kind))
		}
		for _, ns := range claimed[p] {
			size = max(size, ns)
		}
		wanted := map[int]float64{}
		for i, ns := range claimed[p] {
			wanted[i] = ns / size
		}
		left, _ := s.give(Column{Kind: p.kind}, size, wanted)
		s.Shares.Ns += size - left
	}
}
