package house

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/report/layout"
)

const proofsFile = "internal/diagnose/remedy/proofs.json"

// TestFixesDocument: docs/fixes.md is made of the catalogue and of what the lab measured.
func TestFixesDocument(t *testing.T) {
	const file = "docs/fixes.md"
	fixes, err := grade.ReadFixes(proofsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := fixesDocument(cause.Catalogue(), fixes)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the proofs make (%v): run make docs", file, err)
	}
}

// TestProofsAreOfCauses: each proof is of a cause that there is.
func TestProofsAreOfCauses(t *testing.T) {
	for _, p := range remedy.Proofs {
		if !slices.ContainsFunc(cause.Catalogue(), func(c cause.Cause) bool { return c.ID == p.Cause }) {
			t.Errorf("%s: no cause %s", p.Scenario, p.Cause)
		}
	}
}

func fixesDocument(all []cause.Cause, fixes grade.Fixes) []byte {
	var b bytes.Buffer
	proven := map[string]bool{}
	for _, p := range fixes.Proofs {
		proven[p.Cause] = proven[p.Cause] || p.Proven
	}
	count := 0
	for _, c := range all {
		if proven[c.ID] {
			count++
		}
	}
	fmt.Fprintf(&b, `# Fixes

What the lab measured of the fixes that doctor prints. Made from
`+"`%s`"+` by `+"`make docs`"+`; do not edit.

%d of %d causes have a proven fix. For each, the lab made the scenario, asked doctor, and carried out a step as it was
printed: a command in a shell, a setting or a change by making the scenario again with it. Then it watched again.
A step is **proven** if the second watch was healthy, or the cause was gone and callers lost at most a tenth of their
time. Commands were taken back by their undo, where they have one.

The times are what all callers together lost, per second; *of* is their time without that. Make a row again:

`+"```text"+`
slowpath lab run SCENARIO --apply-fix --step STEP
`+"```"+`

| cause | step | scenario | lost before | lost after | of | second verdict |
|---|---|---|---|---|---|---|
`, proofsFile, count, len(all))
	ms := func(s float64) string { return format.Brief(int64(s * 1e9)) }
	proofs := slices.Clone(fixes.Proofs)
	slices.SortStableFunc(proofs, func(a, b remedy.Proof) int {
		return cmp.Or(cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Scenario, b.Scenario))
	})
	for _, p := range proofs {
		step := "`" + p.Step + "`"
		if p.Library != "" {
			step += " (" + cell(p.Library) + ")"
		}
		after := cell(p.After)
		if !p.Proven {
			after = "**not proven**: " + cell(p.Why) + " (" + after + ")"
		}
		fmt.Fprintf(&b, "| [`%s`](causes.md#%s) | %s | `%s` | %s | %s | %s | %s |\n", p.Cause, p.Cause, step, p.Scenario,
			ms(p.LostBefore), ms(p.LostAfter), ms(p.Of), after)
	}
	fmt.Fprint(&b, "\n## Without a proof\n\n")
	for _, c := range all {
		if proven[c.ID] {
			continue
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", c.ID, cell(layout.OneLine(whyUnproven(c.ID, fixes))))
	}
	return b.Bytes()
}

// whyUnproven says why a cause has no proven fix.
func whyUnproven(id string, fixes grade.Fixes) string {
	for _, sc := range scenario.Catalogue() {
		if sc.Cause == id && sc.Unproven != "" {
			return sc.Unproven
		}
	}
	for _, p := range fixes.Proofs {
		if p.Cause == id {
			return p.Why
		}
	}
	for _, u := range fixes.Untried {
		if u.Cause == id {
			return u.Why
		}
	}
	return "not tried"
}
