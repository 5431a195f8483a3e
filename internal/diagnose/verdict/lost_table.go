package verdict

import (
	"cmp"
	"maps"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/law"
)

// LostTime is the time that callers lost as one table: a row per cause, a column per state in which it passed. All is
// in nanoseconds, as Excess is: of slow calls above their baseline and by their weight. The rows of causes without
// Because and that of Unexplained add up to the columns, and these to Excess.Ns.
type LostTime struct {
	States []LostState `json:"states"` // largest first
	// Causes are in the order of the findings; the last is Unexplained, what no finding explains.
	Causes []LostToCause `json:"causes"`
}

// LostState is where callers lost time.
type LostState struct {
	// Actor and State are those of an account, or Elsewhere and a facts.LossKind: time outside of slow calls.
	Actor string `json:"actor"`
	State string `json:"state"`
	Ns    int64  `json:"ns"`
}

// LostToCause is the time that a finding explains, with that of its consequences.
type LostToCause struct {
	Cause   string  `json:"cause"`
	Because string  `json:"because,omitempty"` // its time is a part of that of this cause
	Ns      int64   `json:"ns"`
	Cells   []int64 `json:"cells"` // by LostTime.States
	// Overlaps is the time that the finding would explain as well, and that counts for others.
	Overlaps []Overlap `json:"overlaps"`
}

// Overlap is time that counts for another cause.
type Overlap struct {
	Cause string `json:"cause"`
	Ns    int64  `json:"ns"`
}

// Unexplained is the cause of what no finding explains, Elsewhere the actor of time outside of slow calls.
const (
	Unexplained = account.Unexplained
	Elsewhere   = "elsewhere"
)

// lostTable is the lost time by causes and states. fs are findings, each with its place among the claimants; what
// others got of it, since nobody notices that, is not explained.
func lostTable(shares law.Shares, fs []finding) LostTime {
	rows := make([]map[law.Column]int64, len(fs)+1)
	rest := maps.Clone(shares.Unclaimed)
	for i, cells := range shares.Cells {
		if !slices.ContainsFunc(fs, func(f finding) bool { return slices.Contains(f.with, i) }) {
			for c, ns := range cells {
				rest[c] += ns
			}
		}
	}
	for i := range rows {
		cells := rest
		if i < len(fs) {
			cells = map[law.Column]float64{}
			for _, k := range fs[i].with {
				for c, ns := range shares.Cells[k] {
					cells[c] += ns
				}
			}
		}
		rows[i] = map[law.Column]int64{}
		for c, ns := range cells {
			rows[i][c] = int64(ns + 0.5)
		}
	}
	columns := columnsOf(rows)
	t := LostTime{States: []LostState{}, Causes: []LostToCause{}}
	for _, c := range columns {
		s := LostState{Actor: c.Actor, State: c.State}
		if c.Kind != "" {
			s = LostState{Actor: Elsewhere, State: string(c.Kind)}
		}
		for _, row := range rows {
			s.Ns += row[c]
		}
		t.States = append(t.States, s)
	}
	for i := len(fs) - 1; i >= 0; i-- { // a consequence comes behind its root cause
		if root := slices.IndexFunc(fs, func(f finding) bool { return f.Cause == fs[i].Because }); root >= 0 {
			for c, ns := range rows[i] {
				rows[root][c] += ns
			}
		}
	}
	for i, f := range fs {
		t.Causes = append(t.Causes, rowOf(f.Finding, rows[i], columns, overlapsOf(shares.Overlaps[f.claimant], fs)))
	}
	t.Causes = append(t.Causes, rowOf(cause.Finding{Cause: Unexplained}, rows[len(fs)], columns, []Overlap{}))
	return t
}

// columnsOf are those with any time, the largest first.
func columnsOf(rows []map[law.Column]int64) (out []law.Column) {
	sums := map[law.Column]int64{}
	for _, row := range rows {
		for c, ns := range row {
			sums[c] += ns
		}
	}
	for c, ns := range sums {
		if ns > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b law.Column) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.State, b.State),
			cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func rowOf(f cause.Finding, cells map[law.Column]int64, columns []law.Column, overlaps []Overlap) LostToCause {
	r := LostToCause{Cause: f.Cause, Because: f.Because, Cells: []int64{}, Overlaps: overlaps}
	for _, c := range columns {
		r.Cells = append(r.Cells, cells[c])
		r.Ns += cells[c]
	}
	return r
}

// overlapsOf is the time that a finding would explain as well, by the finding for which it counts, largest first.
func overlapsOf(overlaps map[int]float64, fs []finding) []Overlap {
	out := []Overlap{}
	for _, f := range fs {
		if whole := int64(overlaps[f.claimant] + 0.5); whole > 0 {
			out = append(out, Overlap{f.Cause, whole})
		}
	}
	slices.SortFunc(out, func(a, b Overlap) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// excess sums it up.
func (t LostTime) excess() (e Excess) {
	for _, s := range t.States {
		e.Ns += s.Ns
	}
	for _, r := range t.Causes {
		if r.Cause == Unexplained {
			e.UnexplainedNs = r.Ns
		}
	}
	return e
}

// in is the time that was lost in a state of the account.
func (t LostTime) in(actor, state string) int64 {
	for _, s := range t.States {
		if s.Actor == actor && s.State == state {
			return s.Ns
		}
	}
	return 0
}
