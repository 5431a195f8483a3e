package watching

import (
	"errors"
	"fmt"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/top"
)

// soFar is what a watch has seen while it goes on.
type soFar struct {
	lasts     time.Duration // 0: until Ctrl-C
	untilSure bool

	judged time.Time // the end of the verdict that was looked at last
	cause  string    // of which that was sure; empty: of none
}

// errSure ends a watch whose cause is sure.
var errSure = errors.New("the cause is sure")

// surely is how often findings must have been right of which a verdict is sure.
const surely = 0.9

// second says what was seen until the end of a second. The error is errSure where the watch can end.
func (s *soFar) second(p *cli.Program, f top.Frame) error {
	p.Progress("%s", s.line(f))
	if !s.untilSure || f.Verdict == nil || f.Verdict.At.Equal(s.judged) {
		return nil
	}
	before := s.cause
	s.judged, s.cause = f.Verdict.At, sureCause(f.Verdict.Diagnosis)
	if s.cause != "" && s.cause == before { // two verdicts say so
		return errSure
	}
	return nil
}

// sureCause is the cause of a verdict which explains most of the lost time, by many calls, and with confidence.
func sureCause(d verdict.Diagnosis) string {
	if len(d.Findings) == 0 {
		return ""
	}
	f := d.Findings[0]
	if !verdict.Main(f) || verdict.Few(f) || f.Confidence < surely {
		return ""
	}
	return f.Cause
}

// line begins with what changes, since the end of a long line is cut.
func (s *soFar) line(f top.Frame) string {
	text := f.Watched.Round(time.Second).String()
	if s.lasts > 0 {
		text += " of " + s.lasts.String()
	}
	calls := f.UsersMinute
	if calls.Calls == 0 {
		calls = f.OwnMinute
	}
	if calls.Calls > 0 {
		text += fmt.Sprintf(": %s, %s slow", format.Count(calls.Calls, "call"), format.Thousands(calls.Slow))
	}
	if v := f.Verdict; v != nil && len(v.Diagnosis.Findings) > 0 {
		first := v.Diagnosis.Findings[0]
		text += ", so far " + first.Cause
		if len(first.Culprits) > 0 {
			text += " by " + first.Culprits[0].Process
		}
	}
	where := f.Target
	if f.Nodes > 1 {
		where += fmt.Sprintf(" and %d more", f.Nodes-1)
	}
	return text + "; watching " + where + "; Ctrl-C ends it"
}
