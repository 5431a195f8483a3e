package watching

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/source"
)

// Verdict is how the verdict of a recording is given.
type Verdict struct {
	*named.CommandLine
	AsJSON        bool
	ExpectHealthy bool // any other verdict is cli.ExitFindings
	UntilSure     bool // the watch ends when the cause is sure
	Brief         bool // only what is read first
	Page          Page
}

// verdictFollows is what Ctrl-C leads to.
const verdictFollows = "the verdict of what was seen follows"

// Files prints the verdict of recordings, or of a packet capture, that the command line names.
func (v *Verdict) Files(ctx context.Context, paths []string) error {
	defer v.Scratch.Remove()
	v.InterruptEnds("there is no verdict")
	paths, err := v.WithCaptures(ctx, paths)
	if err != nil {
		return err
	}
	return v.print(paths)
}

// Texts prints the verdict of what servers said of themselves in texts that the command line names.
func (v *Verdict) Texts(paths []string) error {
	defer v.Scratch.Remove()
	v.InterruptEnds("there is no verdict")
	path, err := v.OfTexts(paths)
	if err != nil {
		return err
	}
	return v.print([]string{path})
}

// Watch runs a watch and prints its verdict.
func (v *Verdict) Watch(ctx context.Context, o source.Options, f File) error {
	if err := f.place(v.CommandLine); err != nil {
		return err
	}
	defer v.Scratch.Remove()
	if !v.UntilSure && !v.OnTerminal() { // nobody is told, so nothing is counted and judged meanwhile
		return v.ofWatch(Record(ctx, v.CommandLine, o, f, verdictFollows), f.Path)
	}
	live := LiveView{Verdict: *v, said: &soFar{lasts: o.For, untilSure: v.UntilSure}}
	return v.ofWatch(f.record(ctx, v.CommandLine, o, verdictFollows, live.show), f.Path)
}

// ofWatch prints the verdict of a watch that has ended. Where the recording ended before the watch, such as on a
// full disk, the verdict is of the time until then; without findings it is an error all the same.
func (v *Verdict) ofWatch(err error, path string) error {
	var cut *recording.WriteError
	if !errors.As(err, &cut) {
		if err != nil {
			return err
		}
		v.OnInterrupt("the verdict of the watch follows")
		return v.print([]string{path})
	}
	v.Explain(err)
	if err := v.print([]string{path}); err != nil {
		return err
	}
	if v.Code == cli.ExitClean {
		v.Code = cli.ExitInternal
	}
	return nil
}

// judge judges a recording, and shows how far it is.
func (v *Verdict) judge(rec *recording.Recording) verdict.Diagnosis {
	calls, events := format.Count(len(rec.Calls), "call"), format.Count(rec.EventCount(), "event")
	what := fmt.Sprintf("judging %s and %s", calls, events)
	defer v.Working("%s", what)()
	return verdict.Stepwise(facts.New(rec), v.Version, func(nth, of int) {
		v.Progress("%s: cause %d of %d", what, nth, of)
	})
}

// exitBy sets the exit code of a verdict.
func (v *Verdict) exitBy(d verdict.Diagnosis) {
	if d.Verdict == verdict.Findings || v.ExpectHealthy && d.Verdict != verdict.Healthy {
		v.Code = cli.ExitFindings
	}
}

// judgingGCPercent is the garbage that may be there while a recording is judged, in percent of what is held.
const judgingGCPercent = 20

// print prints the verdict of a recording, or of several as one, and sets the exit code.
func (v *Verdict) print(paths []string) error {
	// The garbage of judging would be as much as the recording: a fifth of that costs about a sixth more CPU time.
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	rec, err := v.Recordings(paths, false)
	if err != nil {
		return err
	}
	d := v.judge(rec)
	v.exitBy(d)
	var printed error
	switch {
	case v.AsJSON:
		printed = report.JSON(v.Stdout, d)
	case v.Brief:
		printed = report.Brief(v.Stdout, d, v.Style())
	default:
		printed = v.Paged(func(w io.Writer) error { return report.Text(w, d, v.Style()) })
	}
	if v.Page.file != nil {
		defer v.Working("writing %s", v.Page.Path)()
	}
	return errors.Join(printed, v.Page.write(rec, d))
}
