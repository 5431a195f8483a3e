package top

import (
	"bytes"
	"io"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// verdictLines are the verdict of the last seconds, in at most so many lines.
func (m Model) verdictLines(s *screen, width, room int) []string {
	prose := min(width, proseWidth)
	v := m.frame.Verdict
	switch {
	case v == nil:
		first := "verdict: the first one comes after " + format.Interval(judgeFirst) + " of watching"
		return most(room, s.dim(first, prose))
	case v.Failed != "":
		failed := "verdict: judging failed (" + v.Failed + "); q prints that of the whole watch"
		return most(room, layout.Wrap(s.p.Text(failed), prose))
	}
	head := "verdict of the last " + format.Interval(v.Of.Round(time.Second)) + ", " +
		format.Interval(m.age(*v).Round(time.Second)) + " old"
	if width >= foldWidth {
		head += " (5: all of it)"
	}
	lines := []string{s.p.In(layout.Dim, s.p.Shorten(head, width))}
	var summary []string
	for _, l := range layout.Wrap(s.p.Text(v.Diagnosis.Summary), prose) {
		summary = append(summary, s.p.In(paintOf(v.Diagnosis.Verdict), l))
	}
	rest := m.fixLines(s, *v, width, room-1-len(summary))
	return most(room, append(append(lines, summary...), rest...))
}

// fixLines are the proof and the fix, or where there is no room for both, the fix.
func (m Model) fixLines(s *screen, v Verdict, width, room int) []string {
	for _, write := range []func(io.Writer, verdict.Diagnosis, layout.Style) error{report.Answer, report.FirstStep} {
		var b bytes.Buffer
		_ = write(&b, v.Diagnosis, s.style(width)) // a buffer takes all
		if lines := whole(linesOf(b.String()), width); len(lines) <= room {
			return lines
		}
	}
	return []string{s.p.In(layout.Dim, "fix: press 5")}
}

func (s *screen) dim(text string, width int) (lines []string) {
	for _, l := range layout.Wrap(s.p.Text(text), width) {
		lines = append(lines, s.p.In(layout.Dim, l))
	}
	return lines
}

// most are the first of some lines.
func most(room int, lines []string) []string { return lines[:min(room, len(lines))] }

// proseWidth is the longest line of running text.
const proseWidth = 116

func paintOf(said string) layout.Paint {
	switch said {
	case verdict.Healthy:
		return layout.Calm
	case verdict.Findings:
		return layout.Alarm
	}
	return layout.Doubt
}
