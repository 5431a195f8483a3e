package report

import (
	"fmt"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/format"
)

// ComparedTable is a part of a comparison, as text for people.
type ComparedTable struct {
	Title string // empty: the numbers of calls, which come first
	Rows  []ComparedRow
}

// ComparedRow is one thing before and after.
type ComparedRow struct {
	Name, Before, After, Note string
	Change                    string // compare.Better, compare.Worse, or empty
}

// ComparedTables are what a comparison has to show, without tables that are empty. Texts of others are as they are.
func ComparedTables(c compare.Comparison) (out []ComparedTable) {
	for _, t := range []ComparedTable{
		{"", comparedMetrics(c.Metrics)},
		{"Findings, by their share of the lost time", comparedFindings(c.Findings)},
		{"Time of slow calls, for each 1 000 calls", comparedStates(c.States)},
		{"Callers, calls per second", comparedCallers(c.Callers)},
	} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

var metricTexts = map[string]string{
	"calls_per_second": "calls per second", "p50_ns": "p50", "p99_ns": "p99", "slow_share": "slow",
	"failed_share": "failed", "stalls_per_minute": "stalls per minute",
}

func comparedMetrics(metrics []compare.Metric) (rows []ComparedRow) {
	for _, m := range metrics {
		if m.Name == "failed_share" && m.Before+m.After == 0 {
			continue // as it should be
		}
		text := func(v float64) string {
			switch m.Name {
			case "calls_per_second", "stalls_per_minute":
				return format.Rounded(v)
			case "slow_share", "failed_share":
				return format.Percent(v)
			}
			return format.Duration(int64(v))
		}
		row := ComparedRow{metricTexts[m.Name], text(m.Before), text(m.After), "no difference shown", m.Verdict}
		switch {
		case m.Verdict == compare.Unknown:
			row.Note = "too short to tell"
		case m.Verdict != compare.Same && m.Low != nil && m.High != nil:
			row.Note = shiftText(*m.Change, *m.Low, *m.High)
		case m.Verdict != compare.Same:
			row.Note = m.Verdict
		}
		if m.Name == "calls_per_second" { // neither more nor fewer calls are better
			row.Change = ""
		}
		rows = append(rows, row)
	}
	return rows
}

// shiftText is a change with its interval: in percent, or in times where it is more than twice.
func shiftText(change, low, high float64) string {
	if change > 1 {
		times := func(change float64) string { return format.Rounded(1 + change) }
		return fmt.Sprintf("%s times (%s to %s)", times(change), times(low), times(high))
	}
	return fmt.Sprintf("%+.0f %% (%+.0f to %+.0f)", 100*change, 100*low, 100*high)
}

func comparedFindings(findings []compare.Finding) (rows []ComparedRow) {
	text := func(share float64) string {
		if share == 0 {
			return "-"
		}
		return format.Percent(share)
	}
	for _, f := range findings {
		rows = append(rows, ComparedRow{
			f.Cause, text(f.Before), text(f.After), f.Change,
			map[string]string{"gone": compare.Better, "new": compare.Worse}[f.Change],
		})
	}
	return rows
}

// comparedShown is how many states and callers are listed; the JSON has all.
const comparedShown = 6

func comparedStates(states []compare.State) (rows []ComparedRow) {
	for _, s := range states[:min(len(states), comparedShown)] {
		rows = append(rows, ComparedRow{
			Name: stateName(s.Actor, s.State), Before: format.Duration(int64(s.Before)),
			After: format.Duration(int64(s.After)),
		})
	}
	return rows
}

func comparedCallers(callers []compare.Caller) (rows []ComparedRow) {
	for _, c := range callers[:min(len(callers), comparedShown)] {
		rows = append(rows, ComparedRow{
			Name: c.Name, Before: format.Rounded(c.Before), After: format.Rounded(c.After),
		})
	}
	return rows
}
