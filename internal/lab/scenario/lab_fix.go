package scenario

import (
	"context"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/lab/fleet"
)

// fixed is the step of a fix with which a scenario is made, and whether its making has asked for it.
type fixed struct {
	step  remedy.Step
	asked bool
}

// Fix makes the scenario as it is after a step that is no command: with another setting, or with other code. Call it
// before Make.
func (l *Lab) Fix(s remedy.Step) { l.fix = &fixed{step: s} }

// StepsOf names the program of the scenario's client, such as go-redis-v9: a step of another library is not carried
// out.
func (l *Lab) StepsOf(program string) {
	if l.fix != nil && !strings.HasPrefix(program, strings.ToLower(l.fix.step.Library)) {
		l.fix = nil
	}
}

// Fixed reports whether the scenario is made with this step carried out.
func (l *Lab) Fixed(id string) bool {
	if l.fix == nil || l.fix.step.ID != id {
		return false
	}
	l.fix.asked = true
	return true
}

// FixedNumber is the value that the step sets, where it is a number and is carried out; otherwise what the scenario has
// without it.
func (l *Lab) FixedNumber(id string, without int) int {
	if l.fix == nil || l.fix.step.ID != id {
		return without
	}
	value, err := strconv.Atoi(strings.TrimSpace(l.fix.step.To))
	if err != nil {
		l.Logf("step %s: %q is no number", id, l.fix.step.To)
		return without
	}
	l.fix.asked = true
	return value
}

// CarriedOut reports whether the step of Fix was asked for by what was made: otherwise it changed nothing.
func (l *Lab) CarriedOut() bool { return l.fix != nil && l.fix.asked }

// startForSnapshots starts a server, and the one that gets BGSAVE: itself, or its replica where that is the fix.
func (l *Lab) startForSnapshots(ctx context.Context, spec fleet.Spec) (s, saves *fleet.Instance, err error) {
	if l.Fixed("snapshot-on-replica") {
		return l.withReplica(ctx, spec)
	}
	s, err = l.Start(ctx, spec)
	return s, s, err
}
