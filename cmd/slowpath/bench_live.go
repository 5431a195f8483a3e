package main

import (
	"fmt"
	"time"

	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// linesApart is how often a load says on a stderr that is no terminal how far it is.
const linesApart = 10 * time.Second

// live shows the running second: on a terminal each, elsewhere now and then.
type live struct {
	app         *app
	connections int // that should stand
	total       time.Duration
	errors      int64
}

func (l *live) second(s bench.Second, _ *engine.Tally) {
	l.errors += s.Errors
	line := report.LoadLine(s, l.errors, l.connections, l.total)
	switch {
	case l.app.onTerminal():
		const hint = "; Ctrl-C ends it"
		if layout.Width(line+hint) <= l.app.liveWidth() {
			line += hint
		}
		l.app.progress("%s", line)
	case (s.Second+1)%int(linesApart/time.Second) == 0 && s.Seconds == 1:
		fmt.Fprintln(l.app.stderr, line)
	}
}

// standing is how many connections of a load should stand all the time: where they come and go by plan, none that is
// not there is missing.
func standing(o *engine.Options) int {
	if o.PerCall || o.ReconnectEvery > 0 {
		return 0
	}
	return o.Connections
}
