package report

import (
	"io"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report/layout"
)

// JSON writes a diagnosis by the contract slowpath.diagnosis/v1: indented, with a newline at the end, lists never null.
// It fails on a number or a time that JSON cannot express.
func JSON(w io.Writer, d verdict.Diagnosis) error { return layout.JSON(w, "the diagnosis", listed(d)) }

// maxCallers is how many callers a diagnosis lists as JSON: in a fleet each host is one.
const maxCallers = 50

// listed gives a diagnosis in which absent lists are empty ones, without changing d.
func listed(d verdict.Diagnosis) verdict.Diagnosis {
	d.Target.Nodes = list(d.Target.Nodes)
	d.Sources = list(d.Sources)
	d.Populations = list(d.Populations)
	d.Account = list(d.Account)
	d.BlindSpots = list(d.BlindSpots)
	d.Cost = list(d.Cost)
	d.Callers = d.Callers[:min(len(d.Callers), maxCallers)]
	d.CallersTime = d.CallersTime[:min(len(d.CallersTime), maxCallers)]
	d.Findings = append([]cause.Finding{}, d.Findings...)
	for i, f := range d.Findings {
		f.Nodes = list(f.Nodes)
		f.Evidence, f.Against, f.Fix, f.See = list(f.Evidence), list(f.Against), list(f.Fix), list(f.See)
		f.FixSteps = list(f.FixSteps)
		d.Findings[i] = f
	}
	d.Worst = append([]verdict.Worst{}, d.Worst...)
	for i := range d.Worst {
		d.Worst[i].Segments = list(d.Worst[i].Segments)
	}
	d.LostTime.States = list(d.LostTime.States)
	d.LostTime.Causes = append([]verdict.LostToCause{}, d.LostTime.Causes...)
	for i := range d.LostTime.Causes {
		r := &d.LostTime.Causes[i]
		r.Cells, r.Overlaps = list(r.Cells), list(r.Overlaps)
	}
	return d
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
