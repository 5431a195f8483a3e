//go:build linux

package benching

import (
	"fmt"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/results"
	"slowpath/internal/report/layout"
)

// live shows the running second: on a terminal each, elsewhere now and then.
type live struct {
	app         *named.CommandLine
	connections int // that should be open
	total       time.Duration
	errors      int64
}

func (l *live) second(s bench.Second, _ *engine.Tally) {
	l.errors += s.Errors
	line := results.LoadLine(s, l.errors, l.connections, l.total)
	switch {
	case l.app.OnTerminal():
		const hint = "; Ctrl-C ends it"
		if layout.Width(line+hint) <= l.app.LiveWidth() {
			line += hint
		}
		l.app.Progress("%s", line)
	case (s.Second+1)%int(cli.LinesApart/time.Second) == 0 && s.Seconds == 1:
		fmt.Fprintln(l.app.Stderr, line)
	}
}

// expectedConnections is how many connections of a load should be open all the time; 0 where they come and go by plan.
func expectedConnections(o *engine.Options) int {
	if o.PerCall || o.ReconnectEvery > 0 {
		return 0
	}
	return o.Connections
}
