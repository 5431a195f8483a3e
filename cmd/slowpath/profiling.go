package main

import (
	"os"

	"github.com/spf13/pflag"

	"slowpath/internal/profile"
	"slowpath/internal/stacks"
	"slowpath/internal/watch"
)

// profileFlags say into which applications to look.
type profileFlags struct {
	pprof  []string
	frames string
}

func (p *profileFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&p.pprof, "pprof", nil, "look into the application at this `address` of Go's net/http/pprof, or into the JVM of this pid; may be repeated")
	f.StringVar(&p.frames, "frames", "", "`file` that says what frames of more libraries mean (form: internal/stacks/frames.tsv); with --pprof")
}

// fill checks the flags.
func (p *profileFlags) fill(o *watch.Options) error {
	targets, err := profile.Targets(p.pprof)
	if err != nil {
		return usagef("--pprof: %w", err)
	}
	o.Profiles = targets
	if p.frames == "" {
		return nil
	}
	if len(targets) == 0 {
		return usagef("--frames tells what the stacks of --pprof mean: name an application, or leave it out")
	}
	text, err := os.ReadFile(p.frames)
	if err != nil {
		return usagef("--frames: %w", err)
	}
	if _, err := stacks.Parse(string(text)); err != nil {
		return usagef("--frames %s: %w", p.frames, err)
	}
	o.Frames = string(text)
	return nil
}
