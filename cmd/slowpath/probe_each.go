package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/source/probe"
	"slowpath/internal/wire/target"
)

// stepConnect is the step that opens a connection for each cycle; the others are those of probe.
const stepConnect = "connect"

// eachRate is how many cycles there are per second, if nothing else is said: one every 100 ms.
const eachRate = 10

// eachFlags are those of probe --each.
type eachFlags struct {
	on, write, ping bool
	stepsText       string
	slow            time.Duration
	pin             []int

	fresh bool     // each cycle has a connection of its own
	steps []string // without connect
}

func (e *eachFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&e.on, "each", false, "a line for each cycle of --steps; 10/s unless --rate says otherwise")
	fl.StringVar(&e.stepsText, "steps", "", "what a cycle does: `connect,auth,ping,get`, with --write also set and "+
		"del (default ping,get, or set,get,del)")
	fl.BoolVar(&e.write, "write", false, "let cycles SET and DEL a key of slowpath's own (slowpath:probe:...), which "+
		"expires after 60 s")
	fl.DurationVar(&e.slow, "slow", probe.DefaultSlow, "mark cycles of this `duration` or more")
	fl.BoolVar(&e.ping, "ping", false, "beside each cycle, a TCP connect and, where allowed, an ICMP echo")
	fl.IntSliceVar(&e.pin, "pin", nil, "run on the first of these `CPUs`, and show for each of them how long slowpath "+
		"would not have run: 0,1")
}

func (e *eachFlags) check(cmd *cobra.Command, f *probeFlags) error {
	without := []string{"fresh-rate", "interval"}
	if !e.on {
		without = []string{"steps", "write", "slow", "ping", "pin"}
	}
	for _, name := range without {
		switch {
		case !cmd.Flags().Changed(name):
		case e.on:
			return cli.Usagef("--%s has no effect with --each, which prints every cycle: leave it out", name)
		default:
			return cli.Usagef("--%s has no effect without --each: add it", name)
		}
	}
	if !e.on {
		return nil
	}
	if !cmd.Flags().Changed("rate") {
		f.perSecond = eachRate
	}
	if err := cli.Positive("slow", e.slow); err != nil {
		return err
	}
	if err := e.checkPin(); err != nil {
		return err
	}
	return e.parseSteps()
}

// parseSteps reads --steps.
func (e *eachFlags) parseSteps() error {
	usual := "ping,get"
	if e.write {
		usual = "set,get,del"
	}
	known := []string{
		stepConnect, probe.StepAuth, probe.StepPing, probe.StepGet, probe.StepSet, probe.StepDel,
	}
	writes, commands := false, 0
	for i, step := range strings.Split(cmp.Or(e.stepsText, usual), ",") {
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
		case writing && !e.write:
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
		return cli.Usagef("--steps %s: no command follows; add ping or get", e.stepsText)
	}
	if e.write && !writes {
		return cli.Usagef("--write has no effect: --steps %s has neither set nor del; leave it out", e.stepsText)
	}
	return nil
}

// checkTargets refuses what these targets cannot do.
func (e *eachFlags) checkTargets(targets []target.Target) error {
	for _, t := range targets {
		if slices.Contains(e.steps, probe.StepAuth) && t.Password == "" {
			return cli.Usagef("--steps: auth needs a password, and none is given for %s; give one, or leave auth out",
				t.Addr())
		}
		if e.ping && t.Network == "unix" {
			return cli.Usagef("--ping: there is no network to %s, a unix socket; leave it out", t.Addr())
		}
	}
	return nil
}

// stepsOf are the steps for a hop: a node that serves no key gets only those without one.
func (e *eachFlags) stepsOf(h hop) []string {
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
