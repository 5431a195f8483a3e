package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/top"
)

func (a *app) top() *cobra.Command {
	t := &topCommand{app: a}
	c := &cobra.Command{
		Use:   "top [TARGET...]",
		Short: "What calls take now, whose they are, and what they wait for, live in the terminal",
		Long: `top watches as doctor does and shows each second what calls take, which callers and commands there are,
what slow calls wait for, and the verdict of the last half minute. Enter opens where the time of a slow
call went. Keys are listed by ?.

A TARGET is that of doctor. Without one it is 127.0.0.1:6379, or, where nothing listens there and no password is
given, the servers that are found on this host. What was seen is recorded as by doctor: s saves it, and q ends the
watch and prints the verdict of all of it.

Where stdout is no terminal, --json prints a document for each second, and the last one has the verdict of the whole
watch. Exit codes are those of doctor.`,
		Example: `  slowpath top 10.0.0.5:6379
  slowpath top --record incident.slowpath
  slowpath top 127.0.0.1:6379 --for 1m --json > seconds.ndjson`,
		RunE: t.run,
	}
	t.flags.add(c, 0)
	c.Flags().BoolVar(&t.asJSON, "json", false, "print a "+top.Schema+" document for each second, without a screen")
	c.Flags().StringVar(&t.keep, "record", "", "keep the recording in this `file`, which must not exist")
	a.targetFlags(c)
	return c
}

// topCommand is a watch that is shown.
type topCommand struct {
	*app
	flags  watchFlags
	asJSON bool
	keep   string
	saveIn string // directory of the files that s makes
	watch  *top.Watch
}

func (t *topCommand) run(cmd *cobra.Command, args []string) error {
	if err := t.check(args); err != nil {
		return err
	}
	path := t.keep
	if path == "" {
		var err error
		if path, err = t.scratchRecording(&t.flags); err != nil {
			return err
		}
		defer t.Scratch.Remove()
	}
	var err error
	if t.saveIn, err = filepath.Abs("."); t.keep != "" {
		t.saveIn, err = filepath.Abs(filepath.Dir(t.keep))
	}
	if err != nil {
		return err
	}
	var saves []string
	if t.screen() {
		saves = []string{filepath.Join(t.saveIn, "saved")}
	}
	t.flags.ending = "the verdict of what was seen follows"
	if t.flags.processes.PID == 0 {
		args = t.OrFound(args)
	}
	err = t.watchBy(cmd, &t.flags, args, path, saves, t.show)
	if t.asJSON {
		return t.lastDocument(err, path)
	}
	return t.diagnoseWatch(err, path, false)
}

// check refuses what cannot be shown.
func (t *topCommand) check(args []string) error {
	files, err := named.Files(args)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return cli.Usagef("%s is a file, and top watches servers: slowpath doctor %s", files[0], format.Shell(files[0]))
	}
	switch {
	case t.asJSON:
		return nil
	case !isTerminal(t.Stdout):
		return cli.Usagef("stdout is no terminal: for a document each second add --json, for a verdict: slowpath " +
			"doctor")
	case !isTerminal(t.Stdin) && !t.dumb():
		return cli.Usagef("stdin is no terminal, and top is driven by keys: for a document each second add " +
			"--json, for a verdict: slowpath doctor")
	}
	return nil
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// dumb says that the terminal has no screen: lines are printed.
func (t *topCommand) dumb() bool {
	name := t.Env("TERM")
	return name == "" || name == "dumb"
}

// screen says that there is one.
func (t *topCommand) screen() bool { return !t.asJSON && !t.dumb() }

// show runs the watch, and shows it from when it has begun until it ends or a key ends it.
func (t *topCommand) show(ctx context.Context, o source.Options, rec *recording.Writer, started func()) error {
	slow, _ := cli.ParseSlow(t.flags.slow) // options has checked it
	clk := clock.New()
	o.Clock = clk
	t.watch = top.NewWatch(clk, slow, version)
	o.Progress = func(s string) { t.Progress("%s", s) }
	begun, ended := make(chan struct{}), make(chan error, 1)
	o.Started = func(int) { started(); close(begun) }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ended <- source.Run(ctx, o, t.watch.Sink(rec)) }()
	select {
	case err := <-ended:
		t.ProgressDone()
		return err
	case <-begun:
	}
	t.ProgressDone()
	shown, hide := context.WithCancel(ctx)
	finished := make(chan error, 1)
	go func() { finished <- <-ended; hide() }()
	shownErr := t.display(shown, rec)
	cancel()
	t.Progress("ending the watch")
	err := <-finished
	t.ProgressDone()
	if err == nil && !cli.ReaderGone(shownErr) {
		err = shownErr
	}
	return err
}

// display shows the watch in the way that stdout can.
func (t *topCommand) display(ctx context.Context, rec *recording.Writer) error {
	switch {
	case t.asJSON:
		return t.watch.Frames(ctx, func(f top.Frame) error { return t.print(f.Document()) })
	case t.dumb():
		lines := top.Plain{Style: t.Style()}
		return t.watch.Frames(ctx, func(f top.Frame) error {
			_, err := io.WriteString(t.Stdout, lines.Lines(f))
			return err
		})
	}
	out := t.Stdout.(*os.File) // check has seen that it is a terminal
	_, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return fmt.Errorf("reading the size of the terminal: %w", err)
	}
	return t.watch.Show(ctx, top.Terminal{
		In: t.Stdin.(*os.File), Out: out, Environment: os.Environ(), Style: t.Style(), Height: height,
	}, top.Actions{SaveIn: t.saveIn, Save: func(name string) (string, error) { return t.save(rec, name) }})
}

// print prints a document, unless no second is whole yet.
func (t *topCommand) print(d top.Document) error {
	if d.Time.IsZero() {
		return nil
	}
	return layout.JSONLine(t.Stdout, "a second", d)
}

// save writes what was recorded so far into another file.
func (t *topCommand) save(rec *recording.Writer, name string) (said string, err error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.saveIn, path)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s exists already: type another name", name)
	}
	begin := time.Now()
	if err := rec.Copy(path, t.watch.Clock.Now()); err != nil {
		return "", err
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("saved %s (%s, in %s); slowpath doctor %s", name, format.Bytes(st.Size()),
		format.Brief(time.Since(begin)), format.Shell(name)), nil
}

// lastDocument judges the whole watch, and prints a document that has the verdict.
func (t *topCommand) lastDocument(watchErr error, path string) error {
	if t.watch == nil {
		return watchErr
	}
	rec, err := t.Recordings([]string{path}, false)
	if err != nil {
		return errorOr(watchErr, err)
	}
	d := t.judge(rec)
	f := t.watch.Frame()
	from, to := rec.Window()
	f.Verdict = &top.Verdict{Diagnosis: d, At: time.Unix(0, to), Of: time.Duration(to - from)}
	last := f.Document()
	if last.Final = true; last.Time.IsZero() {
		last.Time = time.Unix(0, to).UTC()
	}
	t.exitBy(d)
	return errorOr(watchErr, t.print(last))
}

// errorOr is the first error.
func errorOr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
