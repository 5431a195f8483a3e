package tracing

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/trace"
)

// replay shows the calls of a recording, or of several as one. They are slow as they were when it was made, unless
// --slow says otherwise.
func (t *tracing) replay(ctx context.Context, files []string) error {
	defer t.app.Scratch.Remove()
	t.app.InterruptEnds("not all calls were shown")
	paths, err := t.app.WithCaptures(ctx, files)
	if err != nil {
		return err
	}
	rec, err := t.app.Recordings(paths, true)
	if err != nil {
		return err
	}
	if rec.Damage != "" {
		t.note("%s", rec.Damage)
	}
	if !rec.SeesCalls() {
		t.note("%s was made without the tap: it has no calls to show", paths[0])
	}
	t.flags.Filter.PID, t.flags.Filter.Comm = t.flags.Processes.PID, t.flags.Processes.Comm
	t.several = len(rec.Nodes()) > 1
	var printErr error
	t.begin(cmp.Or(t.flags.slow, trace.SlowOf(rec)), nil, func(c trace.Call) {
		if printErr == nil {
			printErr = errors.Join(t.take(c), t.print(t.groups.Due(c.ToNs())))
		}
	})
	done := t.app.Working("looking at %s", format.Count(len(rec.Calls), "call"))
	trace.Replay(rec, t.watch)
	done()
	if t.flags.All && rec.SeesCalls() && t.watch.Summary().Reported < 1 {
		t.note("%s does not have all calls that were not slow; to keep them: slowpath trace --all --record FILE",
			paths[0])
	}
	if p := t.flags.Processes; t.shown == 0 && (p.Comm != "" || p.PID != 0) {
		t.note("no call of %s is in %s; it has calls of: %s", p, paths[0],
			cmp.Or(strings.Join(trace.Callers(rec), ", "), "no process of this host"))
	}
	from, to := rec.Window()
	return errors.Join(printErr, t.finish(printErr, time.Duration(to-from)))
}
