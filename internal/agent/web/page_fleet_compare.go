package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
	"slowpath/internal/stats"
)

// fleetCompareView is what two times have, side by side.
type fleetCompareView struct {
	fleetFrame
	At, Window string // as given
	Windows    []choice
	Failure    string
	Before     string // the two times
	After      string
	Tables     []comparedTable
}

var fleetWindows = []choice{
	{Value: "15m", Name: "15 min"},
	{Value: "1h", Name: "1 h"},
	{Value: "24h", Name: "1 day"},
	{Value: "168h", Name: "7 days"},
}

// comparePage answers GET /compare: the nodes and the causes before and after a time.
func (f *Fleet) comparePage(w http.ResponseWriter, r *http.Request) error {
	v := fleetCompareView{
		fleetFrame: fleetFrame{Title: "Compare before and after", Source: f.o.Source},
		At:         r.URL.Query().Get("at"), Windows: slices.Clone(fleetWindows),
	}
	code := http.StatusOK
	if v.At != "" {
		if err := f.compareAt(r, &v); err != nil {
			code, v.Failure = f.failure(r, err)
			v.Failure = bound(v.Failure)
		}
	}
	window := cmp.Or(r.URL.Query().Get("window"), "1h")
	for i := range v.Windows {
		v.Windows[i].Here = v.Windows[i].Value == window
	}
	return f.pageWith(w, r, code, "fleet-compare", "slowpath: "+v.Title, v)
}

func (f *Fleet) compareAt(r *http.Request, v *fleetCompareView) error {
	a, err := f.ask(r, maxFleetRows)
	if err != nil {
		return err
	}
	at, err := timeParameter(r, "at")
	if err != nil {
		return err
	}
	window, err := durationParameter(r, "window", time.Minute, 31*24*time.Hour, time.Hour)
	if err != nil {
		return err
	}
	v.Cluster, v.Node = a.filter.Cluster, a.filter.Node
	a.when = When{From: at.Add(-window), To: at.Add(window)}
	opened, err := f.open(r.Context(), &a)
	if err != nil {
		return err
	}
	defer opened.Done()
	before, after := a, a
	before.filter.From, before.filter.To = at.Add(-window), at
	after.filter.From, after.filter.To = at, at.Add(window)
	worst, _ := manyhosts.QuestionOf("worst")
	why, _ := manyhosts.QuestionOf("why")
	each := []asking{
		{question: worst, asked: before},
		{question: worst, asked: after},
		{question: why, asked: before},
		{question: why, asked: after},
	}
	f.all(r.Context(), opened.Source, each)
	for _, one := range each {
		err = errors.Join(err, one.err)
	}
	if err != nil {
		return err
	}
	v.Before, v.After = when(before.filter.From)+" to "+when(at), when(at)+" to "+when(after.filter.To)
	nodes, worse, better := comparedNodes(each[0].answer.Rows, each[1].answer.Rows)
	causes, added := comparedCauses(each[2].answer.Rows, each[3].answer.Rows)
	v.Tables = []comparedTable{nodes, causes}
	v.Title, v.Class = "No node has clearly more or fewer slow calls", "inconclusive"
	if worse+better > 0 {
		v.Title, v.Class = fmt.Sprintf("%s with clearly more slow calls, %s with fewer", format.Count(worse, "node"),
			format.Count(better, "node")), "findings"
	}
	if worse == 0 && better > 0 {
		v.Class = "healthy"
	}
	if len(added) > 0 {
		v.Title, v.Class = v.Title+"; new since then: "+bound(strings.Join(added, ", ")), "findings"
	}
	return nil
}

// both are the rows of two answers by a key, in the order of the second and then of the first.
func both(before, after manyhosts.Rows, key func(manyhosts.Rows, []any) string) (keys []string,
	was, now map[string][]any,
) {
	was, now = map[string][]any{}, map[string][]any{}
	for _, row := range after.Values {
		k := key(after, row)
		keys, now[k] = append(keys, k), row
	}
	for _, row := range before.Values {
		k := key(before, row)
		if was[k] = row; now[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys, was, now
}

// comparedNodes says of each node how many of its calls were slow. It is worse or better where that is certain (two
// intervals of 95 % that do not touch), and by half at least.
func comparedNodes(before, after manyhosts.Rows) (t comparedTable, worse, better int) {
	t.Title = "Slow calls of each node"
	keys, was, now := both(before, after, func(r manyhosts.Rows, row []any) string {
		return r.Text(row, "cluster") + " " + r.Text(row, "node")
	})
	for _, k := range keys {
		one := comparedRow{Name: k, Before: noNumber, After: noNumber}
		if row := was[k]; row != nil {
			one.Before = slowOf(before, row)
		}
		if row := now[k]; row != nil {
			one.After = slowOf(after, row)
		}
		if was[k] != nil && now[k] != nil {
			one.Class = changed(before, was[k], after, now[k])
			one.Note = fmt.Sprintf("p99 %s → %s", cmp.Or(before.Shown(was[k], "p99_ns"), noNumber),
				cmp.Or(after.Shown(now[k], "p99_ns"), noNumber))
		}
		switch one.Class {
		case "worse":
			worse++
		case "better":
			better++
		}
		t.Rows = append(t.Rows, one)
	}
	order := map[string]int{"worse": 0, "better": 1, "": 2}
	slices.SortStableFunc(t.Rows, func(a, b comparedRow) int { return order[a.Class] - order[b.Class] })
	t.Rows = t.Rows[:min(len(t.Rows), maxTableRows)]
	return t, worse, better
}

func slowOf(r manyhosts.Rows, row []any) string {
	return fmt.Sprintf("%s of %s (%s)", format.Thousands(r.Int(row, "slow")), format.Thousands(r.Int(row, "calls")),
		format.Percent(r.Float(row, "slow_share")))
}

// changed is worse, better, or empty.
func changed(before manyhosts.Rows, was []any, after manyhosts.Rows, now []any) string {
	part := func(r manyhosts.Rows, row []any) (share, least, most float64) {
		slow, calls := r.Int(row, "slow"), max(r.Int(row, "calls"), r.Int(row, "slow"))
		least, most = stats.Proportion(int(slow), int(calls))
		return float64(slow) / float64(max(calls, 1)), least, most
	}
	a, aLeast, aMost := part(before, was)
	b, bLeast, bMost := part(after, now)
	switch {
	case bLeast > aMost && b >= 1.5*a:
		return "worse"
	case aLeast > bMost && a >= 1.5*b:
		return "better"
	}
	return ""
}

// comparedCauses says of each cause in how many incidents it was found, and which are new.
func comparedCauses(before, after manyhosts.Rows) (t comparedTable, added []string) {
	t.Title = "Causes"
	said := func(r manyhosts.Rows, row []any) string {
		if row == nil {
			return "none"
		}
		return fmt.Sprintf("%s in %s", format.Count(r.Int(row, "slow"), "slow call"),
			format.Count(r.Int(row, "incidents"), "incident"))
	}
	keys, was, now := both(before, after, func(r manyhosts.Rows, row []any) string { return r.Text(row, "cause") })
	for _, k := range keys {
		one := comparedRow{Name: k, Before: said(before, was[k]), After: said(after, now[k])}
		switch {
		case was[k] == nil:
			one.Class, one.Note = "worse", "new"
			added = append(added, k)
		case now[k] == nil:
			one.Class, one.Note = "better", "gone"
		}
		t.Rows = append(t.Rows, one)
	}
	return t, added
}
