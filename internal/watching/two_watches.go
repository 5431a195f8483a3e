package watching

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/outfile"
	"slowpath/internal/report"
)

// ofComparison are the flags that do not concern one of the two watches, and those of the password.
var ofComparison = []string{
	"live", "run", "wait", "json", "notable", "into", "max-disk", "pass", "askpass",
}

// TwoWatches are watches of the same servers, with a fix between them.
type TwoWatches struct {
	Comparison
	Fix     Fix
	Keep    string         // directory of the recordings; empty: they are removed in the end
	MaxDisk int64          // bytes of each recording
	Given   *pflag.FlagSet // those of the command, which both watches get
	args    []string       // which name the servers
	dir     string         // of the recordings
	sides   [2]compare.Side
}

// sideNames are those of the two watches; the recordings have them, too.
var sideNames = [2]string{"before", "after"}

// Make makes the two watches in processes of their own: a watch of root gives up its rights for good, and a second one
// could load nothing into the kernel. It asks for the password once, for both.
func (t *TwoWatches) Make(ctx context.Context, args []string) (err error) {
	if t.Where.AskPass {
		if t.Where.Password, err = t.ReadPassword(ctx); err != nil {
			return cli.Usage(err)
		}
		t.Where.AskPass = false
	}
	if _, err := t.Targets(ctx, args); err != nil {
		return err
	}
	t.args = args
	if err := t.place(); err != nil {
		return err
	}
	defer t.Scratch.Remove()
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	return t.make(ctx)
}

// place chooses where the recordings are.
func (t *TwoWatches) place() error {
	if t.Keep == "" {
		dir, bytes, err := t.ScratchPlace()
		t.dir, t.MaxDisk = dir, min(t.MaxDisk, bytes/2)
		return err
	}
	t.dir = t.Keep
	if err := outfile.Directory(t.dir); err != nil {
		return cli.Usagef("--keep: %w", err)
	}
	for i := range sideNames {
		if _, err := os.Lstat(t.path(i)); err == nil {
			return cli.Usagef("--keep: %s exists already; name another directory, or remove it", t.path(i))
		}
	}
	return nil
}

func (t *TwoWatches) path(side int) string {
	return filepath.Join(t.dir, sideNames[side]+".slowpath")
}

// make makes both watches and prints the comparison. Where there is no second one, it prints the verdict of the first.
func (t *TwoWatches) make(ctx context.Context) error {
	t.Fix.begin(t.Stdin)
	if code, err := t.watchOne(ctx, 0); err != nil || code != cli.ExitClean {
		t.Code = code
		return err
	}
	if len(t.sides[0].Diagnosis.Populations) == 0 {
		return t.firstAlone(cli.ExitUsage, errors.New("nothing can be compared: the first watch saw no calls; leave "+
			"--no-probe out, or watch for longer (--for)"))
	}
	t.Say("before: " + t.sides[0].Diagnosis.Summary)
	err := ctx.Err()
	if err == nil {
		err = t.Fix.await(ctx, t.Program)
	}
	if ctx.Err() != nil {
		err = errors.New("ended before the second watch: nothing was compared")
	}
	if err != nil {
		return t.firstAlone(cli.ExitUsage, err)
	}
	code, err := t.watchOne(ctx, 1)
	if err != nil || code != cli.ExitClean {
		return t.firstAlone(code, errors.Join(err, errors.New("there was no second watch: nothing was compared")))
	}
	t.kept()
	return t.print(t.sides, t.names())
}

// watchOne makes one of the two watches and judges it. Where nothing was watched, the process has said why, and code is
// its exit code. What was recorded until a disk was full is judged.
func (t *TwoWatches) watchOne(ctx context.Context, side int) (code int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return cli.ExitInternal, err
	}
	c := exec.CommandContext(ctx, exe, t.arguments(side)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // which ends a watch in good order
	c.Env, c.Stderr = os.Environ(), t.Stderr
	if t.Where.Password != "" {
		c.Env = append(c.Env, "REDISCLI_AUTH="+t.Where.Password)
	}
	err = c.Run()
	if c.ProcessState == nil {
		return cli.ExitInternal, fmt.Errorf("starting the watch: %w", err)
	}
	if _, err := os.Stat(t.path(side)); err != nil {
		return max(c.ProcessState.ExitCode(), cli.ExitFindings), nil
	}
	t.sides[side], err = t.sideOf(t.path(side))
	return cli.ExitClean, err
}

// arguments are those of the process of a watch: the options that were given, but for the password.
func (t *TwoWatches) arguments(side int) []string {
	args := []string{
		"compare", "--live", "--into=" + t.path(side), fmt.Sprintf("--max-disk=%d", t.MaxDisk),
	}
	t.Given.Visit(func(f *pflag.Flag) {
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
	return slices.Concat(args, []string{"--"}, t.args)
}

// firstAlone prints the verdict of the first watch, where the second cannot be compared with it, and why.
func (t *TwoWatches) firstAlone(code int, why error) error {
	t.kept()
	t.Explain(why)
	t.Code = code
	d := t.sides[0].Diagnosis
	if t.AsJSON {
		return report.JSON(t.Stdout, d)
	}
	return report.Text(t.Stdout, d, t.Style())
}

// names are those of the recordings; empty where they are not kept.
func (t *TwoWatches) names() (names [2]string) {
	if t.Keep != "" {
		for i := range names {
			names[i] = filepath.Base(t.path(i))
		}
	}
	return names
}

// kept says where the recordings are.
func (t *TwoWatches) kept() {
	if t.Keep != "" {
		t.Say("recorded in " + t.dir)
	}
}
