package grade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
	"slowpath/internal/report/layout"
)

// FixesSchema names the JSON contract of Fixes.
const FixesSchema = "slowpath.fixes/v1"

// Fixes is what came of the fixes of scenarios.
type Fixes struct {
	Schema string         `json:"schema"`
	Proofs []remedy.Proof `json:"proofs"`
	// Untried are the steps that doctor printed and the lab cannot carry out, and scenarios that gave none.
	Untried []Untried `json:"untried"`
}

// Untried is a step that was not carried out; Step is empty where the scenario gave none.
type Untried struct {
	Cause    string `json:"cause"`
	Scenario string `json:"incident"`
	Step     string `json:"step,omitempty"`
	Why      string `json:"why"`
}

// maxFixes bounds a file of Fixes, in bytes.
const maxFixes = 8 << 20

// NoFixes are those of no scenario yet.
func NoFixes() Fixes {
	return Fixes{Schema: FixesSchema, Proofs: []remedy.Proof{}, Untried: []Untried{}}
}

// ReadFixes reads a file of Fixes; one that does not exist has none.
func ReadFixes(path string) (f Fixes, err error) {
	f = NoFixes()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return f, nil
	case err != nil:
		return f, err
	case info.Size() > maxFixes:
		return f, fmt.Errorf("%s has %d bytes: no file of proofs", path, info.Size())
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Write writes the file in the order of causes.
func (f Fixes) Write(path string) error {
	slices.SortStableFunc(f.Proofs, func(a, b remedy.Proof) int {
		return strings.Compare(a.Cause+" "+a.Scenario+" "+a.Step, b.Cause+" "+b.Scenario+" "+b.Step)
	})
	slices.SortStableFunc(f.Untried, func(a, b Untried) int {
		return strings.Compare(a.Cause+" "+a.Scenario+" "+a.Step, b.Cause+" "+b.Scenario+" "+b.Step)
	})
	file, err := outfile.Overwrite(path)
	if err != nil {
		return err
	}
	return errors.Join(layout.JSON(file, "the proofs", f), file.Close())
}

// Add puts in what came of a scenario, in place of what was known of the same scenario and step.
func (f *Fixes) Add(a Applied) {
	before := a.Before
	for _, p := range a.Proofs {
		f.Proofs = slices.DeleteFunc(f.Proofs, func(o remedy.Proof) bool {
			return o.Scenario == p.Scenario && o.Step == p.Step && o.Library == p.Library
		})
		f.Proofs = append(f.Proofs, p)
	}
	f.Untried = slices.DeleteFunc(f.Untried, func(u Untried) bool {
		return u.Scenario == before.Scenario && (u.Step == "" ||
			slices.ContainsFunc(a.Proofs, func(p remedy.Proof) bool {
				return p.Step == u.Step
			}) || slices.ContainsFunc(a.NotApplied, func(n NotApplied) bool { return n.Step == u.Step }))
	})
	for _, n := range a.NotApplied {
		f.Untried = append(f.Untried, Untried{before.Truth, before.Scenario, n.Step, n.Why})
	}
	if err := before.err(); err != nil {
		f.Untried = append(f.Untried, Untried{before.Truth, before.Scenario, "", layout.OneLine(err.Error())})
	}
}

// Line prints what came of the fix of a scenario.
func (a Applied) Line(w io.Writer) {
	before := a.Before
	if err := before.err(); err != nil {
		fmt.Fprintf(w, "FAIL  %-28s %s\n", before.Scenario, layout.OneLine(err.Error()))
	}
	for _, p := range a.Proofs {
		mark, why := "ok   ", "after it "+p.After
		if !p.Proven {
			mark, why = "NOT  ", p.Why+" ("+p.After+")"
		}
		fmt.Fprintf(w, "%s %-28s %s: callers lost %s s per second, then %s of %s; %s\n", mark, before.Scenario,
			strings.TrimSpace(p.Step+" "+p.Library), format.Rounded(p.LostBefore),
			format.Rounded(p.LostAfter), format.Rounded(p.Of), why)
	}
	for _, n := range a.NotApplied {
		fmt.Fprintf(w, "      %-28s %s: not carried out: %s\n", before.Scenario, n.Step, n.Why)
	}
	endingLine(w, before.Ending)
}

// Table prints how many causes have a proven fix, and which have none.
func (f Fixes) Table(w io.Writer) {
	proven, without := f.causes()
	fmt.Fprintf(w, "\n%d of %d causes that were made have a proven fix\n", len(proven), len(proven)+len(without))
	for _, id := range without {
		fmt.Fprintf(w, "  none: %s\n", id)
	}
}

// causes are those with and without a proven fix, in order.
func (f Fixes) causes() (proven, without []string) {
	has := map[string]bool{}
	for _, p := range f.Proofs {
		has[p.Cause] = has[p.Cause] || p.Proven
	}
	for _, u := range f.Untried {
		has[u.Cause] = has[u.Cause] || false
	}
	for _, id := range slices.Sorted(maps.Keys(has)) {
		if has[id] {
			proven = append(proven, id)
		} else {
			without = append(without, id)
		}
	}
	return proven, without
}
