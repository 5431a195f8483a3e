package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/source"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/profile/stacks"
)

// mostFramesBytes bounds --frames: slowpath's own table has 20 kB.
const mostFramesBytes = 4_000_000

// profileFlags say which applications to profile.
type profileFlags struct {
	pprof  []string
	cpu    []string
	frames string
}

func (p *profileFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&p.pprof, "pprof", nil, "profile the application at this `address` of Go's net/http/pprof, or "+
		"into the JVM of this pid; may be repeated")
	f.StringArrayVar(&p.cpu, "profile", nil, "sample where CPU time goes, by the kernel, as root: cpu for the "+
		"servers on this host (and --pid), cpu:PID for `what` else; may be repeated. off: not even the functions "+
		"of the servers' main threads, which doctor and record sample where they may")
	f.StringVar(&p.frames, "frames", "", "`file` that says what frames of more libraries mean (form: "+
		"internal/source/profile/stacks/frames.tsv); with --pprof")
}

// fill checks the flags.
func (p *profileFlags) fill(o *source.Options) error {
	targets, err := profile.Targets(p.pprof)
	if err != nil {
		return cli.Usagef("--pprof: %w", err)
	}
	o.Profiles = targets
	for _, text := range p.cpu {
		if text == profileOff {
			if len(p.cpu) > 1 {
				return cli.Usagef("--profile off: leave the other --profile out")
			}
			o.MainThreads = false
			continue
		}
		pid, err := sampledProcess(text)
		if err != nil {
			return err
		}
		if pid == 0 {
			o.CPU = true
			continue
		}
		o.CPUOf = append(o.CPUOf, pid)
	}
	if p.frames == "" {
		return nil
	}
	if len(targets) == 0 {
		return cli.Usagef("--frames says what the stacks of --pprof mean: name an application, or leave it out")
	}
	text, err := cli.ReadNamed(p.frames, mostFramesBytes)
	if err != nil {
		return cli.Usagef("--frames: %w", err)
	}
	if _, err := stacks.Parse(string(text)); err != nil {
		return cli.Usagef("--frames %s: %w", p.frames, err)
	}
	o.Frames = string(text)
	return nil
}

// profileOff is the value of --profile by which nothing is sampled.
const profileOff = "off"

// sampledProcess reads "cpu", which gives 0, or "cpu:PID".
func sampledProcess(text string) (int, error) {
	if runtime.GOOS != "linux" {
		return 0, cli.MissingLinux("--profile", "an eBPF program takes the samples")
	}
	rest, ok := strings.CutPrefix(text, "cpu")
	if ok && rest == "" {
		return 0, nil
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(rest, ":"))
	if !ok || !strings.HasPrefix(rest, ":") || err != nil || pid <= 0 {
		return 0, cli.Usagef("--profile %.40q: write cpu for the servers on this host, cpu:PID for another "+
			"process, or off; ps -eo pid,comm lists them", text)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return 0, cli.Usagef("--profile %s: there is no such process on this host; ps -eo pid,comm lists them", text)
	}
	return pid, nil
}
