package top

import (
	"bytes"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// verdictLines are the verdict of the last seconds, in so many lines.
func (m Model) verdictLines(s *screen, width, room int) []string {
	v := m.frame.Verdict
	if v == nil {
		return block([]string{s.p.In(layout.Dim, "verdict: the first one comes after "+
			format.Interval(judgeFirst)+" of watching")}, width, room)
	}
	if v.Failed != "" {
		return block(layout.Wrap(s.p.Text("verdict: judging failed ("+v.Failed+"); press q for that of the whole watch"),
			width), width, room)
	}
	head := "verdict of the last " + format.Interval(v.Of.Round(time.Second)) + ", " +
		format.Interval(m.age(*v).Round(time.Second)) + " old"
	lines := []string{s.p.In(layout.Dim, head+" (5: all of it)")}
	var summary []string
	for _, l := range layout.Wrap(s.p.Text(v.Diagnosis.Summary), min(width, proseWidth)) {
		summary = append(summary, s.p.In(paintOf(v.Diagnosis.Verdict), l))
	}
	const roomy = 6
	write := report.FirstStep
	if room >= roomy {
		write = report.Answer
	}
	var b bytes.Buffer
	_ = write(&b, v.Diagnosis, s.style(width)) // a buffer takes all
	rest := linesOf(b.String())
	if left := room - len(lines); len(summary)+len(rest) > left && room < roomy {
		most := max(1, left-len(rest)) // the fix is the last to go
		if len(summary) > most {
			summary = summary[:most]
			summary[most-1] += s.p.Text("…")
		}
	}
	return block(append(append(lines, summary...), rest...), width, room)
}

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
