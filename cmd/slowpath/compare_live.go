package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/outfile"
	"slowpath/internal/report"
)

// liveFlags are the flags of compare --live.
type liveFlags struct {
	on    bool
	fix   fixFlags
	keep  string
	watch watchFlags
	into  string // of a process that makes one of the watches: its recording
}

// ofComparison are the flags that do not concern one of the two watches, and those of the password.
var ofComparison = []string{
	"live", "run", "wait", "json", "notable", "into", "max-disk", "pass", "askpass",
}

func (l *liveFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&l.on, "live", false, "watch servers, before a fix and after it")
	l.fix.add(f)
	f.StringVar(&l.keep, "keep", "", "with --live: keep before.slowpath and after.slowpath in this `directory`")
	l.watch.add(c, 30*time.Second)
	f.StringVar(&l.into, "into", "", "make one of the two watches into this `file`")
	_ = f.MarkHidden("into") // the flag exists
}

// liveComparison is two watches of the same servers, and what comes between them.
type liveComparison struct {
	*app
	*compareFlags
	cmd     *cobra.Command
	targets []string
	dir     string // of the recordings
	maxDisk int64  // bytes of each
	sides   [2]compare.Side
}

// sideNames are those of the two watches; the recordings have them, too.
var sideNames = [2]string{"before", "after"}

// compareLive makes the two watches in processes of their own: a watch of root gives up its rights for good, and a
// second one could load nothing into the kernel.
func (a *app) compareLive(cmd *cobra.Command, f *compareFlags, args []string) error {
	if f.live.into != "" {
		if f.live.keep == "" {
			a.Scratch.Adopt(filepath.Dir(f.live.into))
		}
		return a.watch(cmd, &f.live.watch, args, f.live.into)
	}
	if err := a.checkLive(cmd, f, args); err != nil {
		return err
	}
	l := &liveComparison{app: a, compareFlags: f, cmd: cmd, targets: args, maxDisk: f.live.watch.maxDisk}
	if err := l.place(); err != nil {
		return err
	}
	defer a.Scratch.Remove()
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	return l.make(cmd.Context())
}

// checkLive refuses what cannot be met before anything is watched, and asks for the password, once for both watches.
func (a *app) checkLive(cmd *cobra.Command, f *compareFlags, args []string) error {
	files, err := named.Files(args)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return cli.Usagef("%s is a file, and --live watches servers: leave --live out, or write HOST:PORT", files[0])
	}
	if err := f.live.fix.check(cmd, a.Stdin); err != nil {
		return err
	}
	o, err := f.live.watch.options()
	if err != nil {
		return err
	}
	if o.For == 0 {
		return cli.Usagef("--for 0: the first watch would not end before Ctrl-C: give a duration such as 30s")
	}
	if err := f.live.watch.processes.check(cmd, true); err != nil {
		return err
	}
	if a.Where.AskPass {
		if a.Where.Password, err = a.ReadPassword(cmd.Context()); err != nil {
			return cli.Usage(err)
		}
		a.Where.AskPass = false
	}
	_, err = a.Targets(cmd.Context(), args)
	return err
}

// place chooses where the recordings are.
func (l *liveComparison) place() error {
	if l.live.keep == "" {
		dir, bytes, note, err := l.Scratch.Place(cli.ScratchParents())
		if note != "" {
			l.Say(note)
		}
		l.dir, l.maxDisk = dir, min(l.maxDisk, bytes/2)
		return err
	}
	l.dir = l.live.keep
	if err := outfile.Directory(l.dir); err != nil {
		return cli.Usagef("--keep: %w", err)
	}
	for i := range sideNames {
		if _, err := os.Lstat(l.path(i)); err == nil {
			return cli.Usagef("--keep: %s exists already; name another directory, or remove it", l.path(i))
		}
	}
	return nil
}

func (l *liveComparison) path(side int) string {
	return filepath.Join(l.dir, sideNames[side]+".slowpath")
}

// make makes both watches and prints the comparison. Where there is no second one, it prints the verdict of the first.
func (l *liveComparison) make(ctx context.Context) error {
	l.live.fix.begin(l.Stdin)
	if code, err := l.watchOne(ctx, 0); err != nil || code != cli.ExitClean {
		l.Code = code
		return err
	}
	if len(l.sides[0].Diagnosis.Populations) == 0 {
		return l.firstAlone(cli.ExitUsage, errors.New("nothing can be compared: the first watch saw no calls; leave "+
			"--no-probe out, or watch for longer (--for)"))
	}
	l.Say("before: " + l.sides[0].Diagnosis.Summary)
	err := ctx.Err()
	if err == nil {
		err = l.live.fix.await(ctx, l.app)
	}
	if ctx.Err() != nil {
		err = errors.New("ended before the second watch: nothing was compared")
	}
	if err != nil {
		return l.firstAlone(cli.ExitUsage, err)
	}
	code, err := l.watchOne(ctx, 1)
	if err != nil || code != cli.ExitClean {
		return l.firstAlone(code, errors.Join(err, errors.New("there was no second watch: nothing was compared")))
	}
	l.kept()
	return l.compareSides(l.sides, l.names(), l.compareFlags)
}

// watchOne makes one of the two watches and judges it. Where nothing was watched, the process has said why, and code is
// its exit code. What was recorded until a disk was full is judged.
func (l *liveComparison) watchOne(ctx context.Context, side int) (code int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return cli.ExitInternal, err
	}
	c := exec.CommandContext(ctx, exe, l.arguments(side)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // which ends a watch in good order
	c.Env, c.Stderr = os.Environ(), l.Stderr
	if l.Where.Password != "" {
		c.Env = append(c.Env, "REDISCLI_AUTH="+l.Where.Password)
	}
	err = c.Run()
	if c.ProcessState == nil {
		return cli.ExitInternal, fmt.Errorf("starting the watch: %w", err)
	}
	if _, err := os.Stat(l.path(side)); err != nil {
		return max(c.ProcessState.ExitCode(), cli.ExitFindings), nil
	}
	l.sides[side], err = l.sideOf(l.path(side))
	return cli.ExitClean, err
}

// arguments are those of the process of a watch: the options that were given, but for the password.
func (l *liveComparison) arguments(side int) []string {
	args := []string{
		"compare", "--live", "--into=" + l.path(side), fmt.Sprintf("--max-disk=%d", l.maxDisk),
	}
	l.cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, v := range values {
			if !slices.Contains(ofComparison, f.Name) {
				args = append(args, "--"+f.Name+"="+v)
			}
		}
	})
	return slices.Concat(args, []string{"--"}, l.targets)
}

// firstAlone prints the verdict of the first watch, where the second cannot be compared with it, and why.
func (l *liveComparison) firstAlone(code int, why error) error {
	l.kept()
	l.Explain(why)
	l.Code = code
	d := l.sides[0].Diagnosis
	if l.asJSON {
		return report.JSON(l.Stdout, d)
	}
	return report.Text(l.Stdout, d, l.Style())
}

// names are those of the recordings; empty where they are not kept.
func (l *liveComparison) names() (names [2]string) {
	if l.live.keep != "" {
		for i := range names {
			names[i] = filepath.Base(l.path(i))
		}
	}
	return names
}

// kept says where the recordings are.
func (l *liveComparison) kept() {
	if l.live.keep != "" {
		l.Say("recorded in " + l.dir)
	}
}
