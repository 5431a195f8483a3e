package probing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/source/probe"
)

// slowCycles counts the slow cycles to one target.
type slowCycles struct {
	slow    time.Duration // a cycle is slow from this time on; 0: there are no cycles
	cycles  int
	by      map[string]int // slow ones, by what took longest in them
	ownLate int            // of these: the probe's CPU was not there for half of the time
	echoed  int            // of these: an echo was asked,
	late    int            // and took as long, or was not answered
}

// cycle counts one.
func (t *tally) cycle(r cycleRow, slow time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range []*figures{t.interval, t.whole} {
		f.cycle(r)
	}
	s := &t.slow
	s.slow, s.cycles = slow, s.cycles+1
	if r.Slow == "" {
		return
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.by[r.Slow]++
	if r.ownLate {
		s.ownLate++
	}
	if len(r.Steps) > 0 && slices.Contains(t.names, probe.EchoTCP) {
		s.echoed++
		if took, ok := r.Beside[probe.EchoTCP]; !ok || took >= int64(slow) {
			s.late++
		}
	}
}

func (f *figures) cycle(r cycleRow) {
	switch r.Error {
	case "", probe.NotSent:
	case probe.Unfinished:
		f.unfinished++
	default:
		f.errors[r.Error]++
	}
	if late := time.Duration(r.OwnNs); late >= noticedLate {
		f.late, f.mostLate = f.late+1, max(f.mostLate, late)
	}
	f.record(figureCycle, r.Ns)
	f.record(figureOwn, r.OwnNs)
	if r.Conn == probe.Kept {
		f.record(figureWait, r.WaitNs)
	}
	for _, s := range r.Steps {
		f.record(s.Step, s.Ns)
	}
	for name, ns := range r.Beside {
		f.record(name, ns)
	}
	for cpu, ns := range r.Late {
		f.record("cpu"+cpu, ns)
	}
}

// facts are what is said of slow cycles. The tally is locked.
func (t *tally) facts() []string {
	s := t.slow
	if s.cycles == 0 {
		return nil
	}
	n := 0
	var parts []string
	for name, count := range s.by {
		n += count
		parts = append(parts, name)
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Or(s.by[b]-s.by[a], strings.Compare(a, b)) })
	for i, name := range parts {
		parts[i] = fmt.Sprintf("%s %d", name, s.by[name])
	}
	fact := fmt.Sprintf("%d of %s slow (%s or more)", n, format.Count(s.cycles, "cycle"),
		format.Duration(int64(s.slow)))
	if n > 0 {
		fact += ", by what took longest: " + strings.Join(parts, ", ")
	}
	facts := []string{fact}
	if s.echoed > 0 {
		facts = append(facts, fmt.Sprintf("a TCP connect beside took as long, or failed, in %d of %d slow cycles",
			s.late, s.echoed))
	}
	if s.ownLate > 0 {
		facts = append(facts, fmt.Sprintf("slowpath's own CPU was not there for half of the time in %d of them",
			s.ownLate))
	}
	if missed := t.whole.missed[missedPrint]; missed > 0 {
		facts = append(facts, fmt.Sprintf("%s not printed: stdout was too slow", format.Count(missed, "cycle")))
	}
	return facts
}
