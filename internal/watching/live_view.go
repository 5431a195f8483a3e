package watching

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/top"
)

// LiveView is a watch that is shown while it goes on, and its verdict.
type LiveView struct {
	Verdict
	saveIn string // directory of the files that s makes
	watch  *top.Watch
	// said, if not nil, is what doctor says each second, in place of a view.
	said *soFar
}

// Check refuses what cannot be shown.
func (v *LiveView) Check() error {
	switch {
	case v.AsJSON:
		return nil
	case !isTerminal(v.Stdout):
		return cli.Usagef("stdout is no terminal: for a document each second add --json, for a verdict: slowpath " +
			"doctor")
	case !isTerminal(v.Stdin) && !v.dumb():
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
func (v *LiveView) dumb() bool {
	name := v.Env("TERM")
	return name == "" || name == "dumb"
}

// screen says that there is one.
func (v *LiveView) screen() bool { return !v.AsJSON && !v.dumb() }

// Watch runs the watch, shows it, and prints its verdict.
func (v *LiveView) Watch(ctx context.Context, o source.Options, f File) (err error) {
	if v.saveIn, err = filepath.Abs(filepath.Dir(f.Path)); err != nil {
		return err
	}
	if err := f.place(v.CommandLine); err != nil {
		return err
	}
	defer v.Scratch.Remove()
	if v.screen() {
		f.beside = []string{filepath.Join(v.saveIn, "saved")}
	}
	err = f.record(ctx, v.CommandLine, o, verdictFollows, v.show)
	if v.AsJSON {
		return v.lastDocument(err, f.Path)
	}
	return v.ofWatch(err, f.Path)
}

// show runs the watch, and shows it from when it has begun until it ends or a key ends it.
func (v *LiveView) show(ctx context.Context, o source.Options, rec *recording.Writer, started func()) error {
	slow, err := cli.ParseSlow(o.Slow)
	if err != nil {
		return err
	}
	clk := clock.New()
	o.Clock = clk
	v.watch = top.NewWatch(clk, slow, v.Version)
	o.Progress = func(s string) { v.Progress("%s", s) }
	begun, ended := make(chan struct{}), make(chan error, 1)
	o.Started = func(int) { started(); close(begun) }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ended <- source.Run(ctx, o, v.watch.Sink(rec)) }()
	select {
	case err := <-ended:
		v.ProgressDone()
		return err
	case <-begun:
	}
	v.ProgressDone()
	shown, hide := context.WithCancel(ctx)
	finished := make(chan error, 1)
	go func() { finished <- <-ended; hide() }()
	go v.AwaitReaderGone(shown, hide)
	shownErr := v.display(shown, rec)
	cancel()
	v.Progress("ending the watch")
	err = <-finished
	v.ProgressDone()
	if err == nil && !cli.ReaderGone(shownErr) && !errors.Is(shownErr, errSure) {
		err = shownErr
	}
	return err
}

// display shows the watch in the way that stdout can.
func (v *LiveView) display(ctx context.Context, rec *recording.Writer) error {
	switch {
	case v.said != nil:
		return v.watch.Frames(ctx, func(f top.Frame) error { return v.said.second(v.Program, f) })
	case v.AsJSON:
		return v.watch.Frames(ctx, func(f top.Frame) error { return v.document(f.Document()) })
	case v.dumb():
		lines := top.Plain{Style: v.Style()}
		return v.watch.Frames(ctx, func(f top.Frame) error {
			_, err := io.WriteString(v.Stdout, lines.Lines(f))
			return err
		})
	}
	out := v.Stdout.(*os.File) // check has seen that it is a terminal
	_, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return fmt.Errorf("reading the size of the terminal: %w", err)
	}
	return v.watch.Show(ctx, top.Terminal{
		In: v.Stdin.(*os.File), Out: out, Environment: os.Environ(), Style: v.Style(), Height: height,
	}, top.Actions{SaveIn: v.saveIn, Save: func(name string) (string, error) { return v.save(rec, name) }})
}

// document prints a document, unless no second is whole yet.
func (v *LiveView) document(d top.Document) error {
	if d.Time.IsZero() {
		return nil
	}
	return layout.JSONLine(v.Stdout, "a second", d)
}

// save writes what was recorded so far into another file.
func (v *LiveView) save(rec *recording.Writer, name string) (said string, err error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.saveIn, path)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s exists already: type another name", name)
	}
	begin := time.Now()
	if err := rec.Copy(path, v.watch.Clock.Now()); err != nil {
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
func (v *LiveView) lastDocument(watchErr error, path string) error {
	if v.watch == nil {
		return watchErr
	}
	rec, err := v.Recordings([]string{path}, false)
	if err != nil {
		return cmp.Or(watchErr, err)
	}
	d := v.judge(rec)
	f := v.watch.Frame()
	from, to := rec.Window()
	f.Verdict = &top.Verdict{Diagnosis: d, At: time.Unix(0, to), Of: time.Duration(to - from)}
	last := f.Document()
	if last.Final = true; last.Time.IsZero() {
		last.Time = time.Unix(0, to).UTC()
	}
	v.exitBy(d)
	return cmp.Or(watchErr, v.document(last))
}
