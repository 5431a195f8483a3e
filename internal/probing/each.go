package probing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/source/probe"
	"slowpath/internal/wire/target"
)

// stepConnect is the step that opens a connection for each cycle; the others are those of probe.
const stepConnect = "connect"

// eachRate is how many cycles there are per second, if nothing else is said: one every 100 ms.
const eachRate = 10

// Each are those of probe --each.
type Each struct {
	On, Write, Ping bool
	StepsText       string
	Slow            time.Duration
	Pin             []int

	fresh bool     // each cycle has a connection of its own
	steps []string // without connect
}

func (e *Each) check(changed func(flag string) bool, f *Options) error {
	without := []string{"fresh-rate", "interval"}
	if !e.On {
		without = []string{"steps", "write", "slow", "ping", "pin"}
	}
	for _, name := range without {
		switch {
		case !changed(name):
		case e.On:
			return cli.Usagef("--%s has no effect with --each, which prints every cycle: leave it out", name)
		default:
			return cli.Usagef("--%s has no effect without --each: add it", name)
		}
	}
	if !e.On {
		return nil
	}
	if !changed("rate") {
		f.perSecond = eachRate
	}
	if err := cli.Positive("slow", e.Slow); err != nil {
		return err
	}
	if err := e.checkPin(); err != nil {
		return err
	}
	return e.parseSteps()
}

// parseSteps reads --steps.
func (e *Each) parseSteps() error {
	usual := "ping,get"
	if e.Write {
		usual = "set,get,del"
	}
	known := []string{
		stepConnect, probe.StepAuth, probe.StepPing, probe.StepGet, probe.StepSet, probe.StepDel,
	}
	writes, commands := false, 0
	for i, step := range strings.Split(cmp.Or(e.StepsText, usual), ",") {
		step = strings.ToLower(strings.TrimSpace(step))
		writing := step == probe.StepSet || step == probe.StepDel
		switch {
		case !slices.Contains(known, step):
			return cli.Usagef("--steps: there is no step %q; give some of %s", step, strings.Join(known, ","))
		case slices.Contains(e.steps, step):
			return cli.Usagef("--steps: %s is there twice; give it once", step)
		case step == stepConnect && i > 0:
			return cli.Usagef("--steps: connect opens the connection of the other steps; put it first")
		case step == probe.StepAuth && e.fresh && i > 1:
			return cli.Usagef("--steps: a new connection logs in at once; put auth after connect")
		case writing && !e.Write:
			return cli.Usagef("--steps: %s changes data: add --write, which lets slowpath write and delete a key "+
				"of its own (slowpath:probe:...)", step)
		case step == stepConnect:
			e.fresh = true
			continue
		}
		if step != probe.StepAuth || !e.fresh {
			commands++
		}
		writes = writes || writing
		e.steps = append(e.steps, step)
	}
	if commands == 0 {
		return cli.Usagef("--steps %s: no command follows; add ping or get", e.StepsText)
	}
	if e.Write && !writes {
		return cli.Usagef("--write has no effect: --steps %s has neither set nor del; leave it out", e.StepsText)
	}
	return nil
}

// checkTargets refuses what these targets cannot do.
func (e *Each) checkTargets(targets []target.Target) error {
	for _, t := range targets {
		if slices.Contains(e.steps, probe.StepAuth) && t.Password == "" {
			return cli.Usagef("--steps: auth needs a password, and none is given for %s; give one, or leave auth out",
				t.Addr())
		}
		if e.Ping && t.Network == "unix" {
			return cli.Usagef("--ping: there is no network to %s, a unix socket; leave it out", t.Addr())
		}
	}
	return nil
}

// stepsOf are the steps for a hop: a node that serves no key gets only those without one.
func (e *Each) stepsOf(h hop) []string {
	if !h.noKeys {
		return e.steps
	}
	steps := slices.DeleteFunc(slices.Clone(e.steps), func(s string) bool {
		return s == probe.StepGet || s == probe.StepSet || s == probe.StepDel
	})
	if !slices.ContainsFunc(steps, func(s string) bool { return s != probe.StepAuth }) {
		steps = append(steps, probe.StepPing)
	}
	return steps
}
