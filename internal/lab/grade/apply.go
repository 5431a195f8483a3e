package grade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/report/layout"
)

const (
	// commandEnd bounds a command of a fix, in time and in output.
	commandEnd    = time.Minute
	commandOutput = 64 << 10
	// settle is how long after a step the second watch begins: what was queued before is served by then.
	settle = 2 * time.Second
	// backWithin is the part of their time that callers may lose after a fix that is proven.
	backWithin = 0.1
)

// Applied is a scenario whose fix was carried out.
type Applied struct {
	Before Result         `json:"before"`
	Proofs []remedy.Proof `json:"proofs"`
	// NotApplied are the steps that were not carried out, with why.
	NotApplied []NotApplied `json:"not_applied"`
	// After is the diagnosis after the last step.
	After verdict.Diagnosis `json:"-"`
}

// NotApplied is a step that was not carried out.
type NotApplied struct {
	Step string `json:"step"`
	Why  string `json:"why"`
}

// Fixer makes scenarios, and carries out what doctor advises.
type Fixer struct {
	Server servers.Name
	Doctor Doctor
	Log    io.Writer
	All    bool   // carry out each step that the lab can; otherwise until one is proven
	Only   string // the step with this id alone
}

// Apply makes a scenario, asks doctor, and carries out the steps that it printed: each by itself, the first always.
// A command is carried out on the scenario as it runs; for a setting or a change the scenario is made again with it.
func (f Fixer) Apply(ctx context.Context, sc scenario.Scenario) (a Applied) {
	a = Applied{Proofs: []remedy.Proof{}, NotApplied: []NotApplied{}}
	if sc.Unproven != "" {
		a.Before = Result{Scenario: sc.ID, Truth: sc.Cause, Skipped: sc.Unproven}
		return a
	}
	steps := f.first(ctx, sc, &a)
	for i, s := range steps {
		if ctx.Err() != nil || i > 0 && !f.All && len(a.Proofs) > 0 && a.Proofs[len(a.Proofs)-1].Proven {
			return a
		}
		switch {
		case f.Only != "" && s.ID != f.Only:
			continue
		case !slices.Contains(sc.Fixes, s.ID):
			a.NotApplied = append(a.NotApplied, NotApplied{s.ID, "the lab cannot carry it out"})
			continue
		case s.Kind == remedy.Command && a.hasCommand(s.ID):
			continue // done on the first scenario
		}
		p, d, err := f.again(ctx, sc, s, a.Before)
		if err != nil {
			a.NotApplied = append(a.NotApplied, NotApplied{s.ID, layout.OneLine(err.Error())})
			continue
		}
		a.Proofs, a.After = append(a.Proofs, p), d
	}
	return a
}

func (a Applied) hasCommand(id string) bool {
	return slices.ContainsFunc(a.Proofs, func(p remedy.Proof) bool { return p.Step == id })
}

// first makes the scenario, and carries out the first of its commands on it. It returns the steps of the fix.
func (f Fixer) first(ctx context.Context, sc scenario.Scenario, a *Applied) (steps []remedy.Step) {
	a.Before = made(ctx, sc, f.Server, f.Doctor, f.Log, nil, func(d verdict.Diagnosis, watch again) error {
		found := slices.IndexFunc(d.Findings, func(c cause.Finding) bool { return c.Cause == sc.Cause })
		if found < 0 {
			return fmt.Errorf("doctor did not find %s", sc.Cause)
		}
		steps = d.Findings[found].FixSteps
		for _, s := range steps {
			if s.Kind == remedy.Command && slices.Contains(sc.Fixes, s.ID) && (f.Only == "" || s.ID == f.Only) {
				p, after, err := f.command(ctx, sc, s, d, watch)
				if err != nil {
					a.NotApplied = append(a.NotApplied, NotApplied{s.ID, layout.OneLine(err.Error())})
					return nil
				}
				a.Proofs, a.After = append(a.Proofs, p), after
				return nil
			}
		}
		return nil
	})
	return steps
}

// again makes the scenario again, with a step carried out.
func (f Fixer) again(ctx context.Context, sc scenario.Scenario, s remedy.Step, before Result) (
	p remedy.Proof, after verdict.Diagnosis, err error,
) {
	if s.Kind == remedy.Command {
		r := made(ctx, sc, f.Server, f.Doctor, f.Log, nil, func(d verdict.Diagnosis, watch again) error {
			for _, c := range d.Findings {
				if i := slices.IndexFunc(c.FixSteps, func(o remedy.Step) bool { return o.ID == s.ID }); i >= 0 {
					p, after, err = f.command(ctx, sc, c.FixSteps[i], d, watch)
					return err
				}
			}
			return errors.New("doctor did not print it again")
		})
		return p, after, r.err()
	}
	f.logf("making %s again with: %s", sc.ID, s.Sentence())
	r := made(ctx, sc, f.Server, f.Doctor, f.Log, &s, nil)
	if err := r.err(); err != nil {
		return p, after, err
	}
	return f.proof(sc, s, before.Diagnosis, r.Diagnosis), r.Diagnosis, nil
}

// again watches a scenario once more.
type again func() (verdict.Diagnosis, error)

// command carries out a command as it was printed, watches again, and takes it back.
func (f Fixer) command(
	ctx context.Context, sc scenario.Scenario, s remedy.Step, before verdict.Diagnosis, watch again,
) (p remedy.Proof, after verdict.Diagnosis, err error) {
	if len(s.Asks) > 0 {
		return p, after, fmt.Errorf("the lab does not know %s", strings.Join(s.Asks, ", "))
	}
	step.Say(ctx, "carrying out %s", s.ID)
	f.logf("$ %s", s.Command)
	if err := f.shell(ctx, s.Command, password(sc)); err != nil {
		return p, after, err
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return p, after, ctx.Err()
	}
	if after, err = watch(); err != nil {
		return p, after, err
	}
	p = f.proof(sc, s, before, after)
	if s.Undo != "" {
		f.logf("$ %s", s.Undo)
		if err := f.shell(ctx, s.Undo, password(sc)); err != nil {
			return p, after, fmt.Errorf("its undo: %w", err)
		}
		p.Undone = true
	}
	return p, after, nil
}

// proof compares the watch after a step with that before it.
func (f Fixer) proof(sc scenario.Scenario, s remedy.Step, before, after verdict.Diagnosis) remedy.Proof {
	p := remedy.Proof{
		Cause: sc.Cause, Step: s.ID, Library: s.Library, Scenario: sc.ID, Server: string(f.Server),
		LostBefore: perSecond(before, before.Excess.Ns), LostAfter: perSecond(after, after.Excess.Ns),
		Of: perSecond(after, max(after.Excess.CallersNs-after.Excess.Ns, 0)), After: after.Verdict,
	}
	var causes []string
	for _, c := range after.Findings {
		causes = append(causes, c.Cause)
	}
	if len(causes) > 0 {
		p.After = strings.Join(causes, ", ")
	}
	switch {
	case after.Verdict == verdict.Healthy:
		p.Proven = true
	case slices.Contains(causes, sc.Cause):
		p.Why = "the second watch found the same cause"
	case p.LostAfter > backWithin*p.Of:
		p.Why = "callers still lost more than a tenth of their time"
	default:
		p.Proven = true
	}
	return p
}

// perSecond is a time of a watch, in seconds per second of it.
func perSecond(d verdict.Diagnosis, ns int64) float64 {
	if d.Window.Seconds <= 0 {
		return 0
	}
	return float64(ns) / 1e9 / d.Window.Seconds
}

// shell carries out a line as a user would, in a shell. redis-cli ends with 0 also where the server refused: what it
// prints tells.
func (f Fixer) shell(ctx context.Context, line, password string) error {
	ctx, cancel := context.WithTimeout(ctx, commandEnd)
	defer cancel()
	path, err := withCLI()
	if err != nil {
		return err
	}
	defer os.RemoveAll(path)
	c := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	c.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	if password != "" {
		c.Env = append(c.Env, "REDISCLI_AUTH="+password)
	}
	c.WaitDelay = time.Second
	out := &limited{left: commandOutput}
	c.Stdout, c.Stderr = out, out
	err = c.Run()
	said := strings.TrimSpace(out.String())
	if said != "" {
		f.logf("%s", layout.Bound(said, layout.MaxText))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w: %s", line, err, layout.OneLine(said))
	case strings.Contains(line, "-cli ") && errorReply.MatchString(said):
		return fmt.Errorf("%s: %s", line, layout.OneLine(said))
	}
	return nil
}

// errorReply begins what redis-cli prints of an error: ERR, NOPERM and so on, and then a text.
var errorReply = regexp.MustCompile(`^(\(error\)|[A-Z]{3,} )`)

// password is that of a scenario's servers, which a user knows: doctor gets it by -a, redis-cli by its environment.
func password(sc scenario.Scenario) string {
	if i := slices.Index(sc.Args, "-a"); i >= 0 && i+1 < len(sc.Args) {
		return sc.Args[i+1]
	}
	return ""
}

// withCLI makes a directory with redis-cli under both of its names.
func withCLI() (string, error) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		return "", fmt.Errorf("%w: redis-cli is missing: apt-get install redis-tools", fault.ErrCannot)
	}
	dir, err := os.MkdirTemp("", "slowpath-cli-")
	if err != nil {
		return "", err
	}
	return dir, os.Symlink(cli, filepath.Join(dir, "valkey-cli"))
}

func (f Fixer) logf(format string, args ...any) { fmt.Fprintf(f.Log, format+"\n", args...) }

// limited keeps the beginning of what is written.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.Buffer.Write(b[:n])
	return len(b), nil
}
