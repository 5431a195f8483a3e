package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/source"
)

func (a *app) doctor() *cobra.Command {
	var w watchFlags
	var asJSON, expectHealthy bool
	var keep string
	c := &cobra.Command{
		Use:   "doctor [TARGET...|FILE...]",
		Short: "Watch a server, account for its slow calls, name the cause and the fix",
		Long: `doctor watches one or more servers, or reads a recording, and says why calls were slow.

A TARGET is HOST:PORT, a unix socket, or a redis://, rediss:// or unix:// URL; without one it is 127.0.0.1:6379.
Several targets are hops of one path (load balancer, proxy, server) or seeds of one cluster. A FILE is a recording;
several are one of the server's host and others of hosts of its clients, made at the same time as root: the calls
that both ends saw are joined, and the network's part of each is the client's time for it minus the server's. A FILE
may also be a packet capture (pcap, pcapng, also gzip or zstd): its verdict is of what packets show. Files of a ring
are read as one, and captures of both ends of the same connections are joined.

Ctrl-C ends the watch early and still prints the verdict; a second one ends at once, as the first one does while a
FILE is read. Exit codes: 0 healthy or inconclusive, 1 findings (with --expect-healthy also inconclusive), 2 usage, 3
cannot connect or log in, 70 anything else, 130 ended at once.`,
		Example: `  slowpath doctor 10.0.0.5:6379
  REDISCLI_AUTH=secret slowpath doctor --user ops rediss://cache.example:6380
  slowpath doctor 127.0.0.1:6379 --for 8s --json
  slowpath doctor night.slowpath
  slowpath doctor redis.pcap
  slowpath doctor night.slowpath --html night.html
  slowpath doctor app-*.pcapng redis-*.pcapng
  slowpath doctor app-host.slowpath redis-host.slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := named.Files(args)
			if err == nil && len(files) > 0 {
				err = onlyFor(cmd, "json", "expect-healthy", htmlFlag)
			}
			if err == nil {
				err = a.page.open(&a.Scratch)
			}
			defer a.page.discard()
			a.expectHealthy = expectHealthy
			switch {
			case err != nil:
				return err
			case len(files) > 0:
				return a.diagnoseFiles(cmd.Context(), files, asJSON)
			case keep == "":
				if keep, err = a.scratchRecording(&w); err != nil {
					return err
				}
				defer a.Scratch.Remove()
			}
			w.ending = "the verdict of what was seen follows"
			return a.watchAndDiagnose(cmd, &w, args, keep, asJSON)
		},
	}
	w.add(c, 30*time.Second)
	c.Flags().BoolVar(&asJSON, "json", false, "print "+verdict.Schema)
	a.page.addFlag(c)
	c.Flags().BoolVar(&expectHealthy, "expect-healthy", false, "exit with 1 unless the verdict is healthy, also where "+
		"it is inconclusive: for pipelines")
	c.Flags().StringVar(&keep, "record", "", "keep the recording in this `file`, which must not exist")
	a.targetFlags(c)
	return c
}

// scratchRecording is where a recording is that nobody asked to keep.
func (a *app) scratchRecording(w *watchFlags) (path string, err error) {
	dir, bytes, note, err := a.Scratch.Place(cli.ScratchParents())
	if err != nil {
		return "", err
	}
	if note != "" {
		a.Say(note)
	}
	w.maxDisk = min(w.maxDisk, bytes)
	return filepath.Join(dir, "watch.slowpath"), nil
}

// onlyFor refuses the flags of a watch where a recording is read: what was not watched cannot be asked for later.
func onlyFor(cmd *cobra.Command, allowed ...string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(allowed, f.Name) && err == nil {
			err = cli.Usagef("--%s has no effect on a recording: leave it out", f.Name)
		}
	})
	return err
}

// watchAndDiagnose is a watch and its verdict.
func (a *app) watchAndDiagnose(cmd *cobra.Command, w *watchFlags, args []string, path string, asJSON bool) error {
	return a.diagnoseWatch(a.watch(cmd, w, args, path), path, asJSON)
}

// diagnoseWatch prints the verdict of a watch that has ended. Where the recording ended before the watch, such as on a
// full disk, the verdict is of the time until then; without findings it is an error all the same.
func (a *app) diagnoseWatch(err error, path string, asJSON bool) error {
	var cut *recording.WriteError
	if !errors.As(err, &cut) {
		if err != nil {
			return err
		}
		a.OnInterrupt("the verdict of the watch follows")
		return a.diagnose([]string{path}, asJSON)
	}
	a.Explain(err)
	if err := a.diagnose([]string{path}, asJSON); err != nil {
		return err
	}
	if a.Code == cli.ExitClean {
		a.Code = cli.ExitInternal
	}
	return nil
}

// watch runs a watch into a recording at path. Where it cannot begin, no file is left. When the recording cannot be
// written any more, it ends with a recording.WriteError.
func (a *app) watch(cmd *cobra.Command, w *watchFlags, args []string, path string) error {
	return a.watchBy(cmd, w, args, path, nil, func(ctx context.Context, o source.Options, rec *recording.Writer,
		started func(),
	) error {
		return a.runWatch(ctx, o, rec, started)
	})
}

// watcher runs a watch into a recording, and calls started when it has begun.
type watcher func(ctx context.Context, o source.Options, rec *recording.Writer, started func()) error

// watchBy is watch with a watcher, which may later write files beside those of saves.
func (a *app) watchBy(cmd *cobra.Command, w *watchFlags, args []string, path string, saves []string,
	run watcher,
) error {
	ctx := cmd.Context()
	o, err := w.options()
	if err != nil {
		return err
	}
	if err := w.processes.check(cmd, true); err != nil {
		return err
	}
	if args, err = a.ServerOf(cmd, w.processes.PID, args); err != nil {
		return err
	}
	if o.Targets, err = a.Targets(ctx, args); err != nil {
		return err
	}
	o.Cluster = a.Where.Cluster
	a.OnInterrupt("nothing was watched yet")
	written := saves
	if a.Scratch.Path() == "" {
		written = append(written, path)
	}
	o.Loaded = a.Dropper(written, o.Targets, o.Profiles)
	rec, err := recording.Create(path, w.maxDisk)
	if err != nil {
		return cli.Usage(err)
	}
	a.Scratch.Begun(path)
	defer a.Scratch.Whole(path)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-rec.Failed(): // nothing more is kept: the watch ends
			cancel()
		case <-ctx.Done():
		}
	}()
	started := func() {
		a.Scratch.Whole(path)
		a.OnInterrupt(w.ending)
	}
	watchErr := run(ctx, o, rec, started)
	closeErr := rec.Close()
	if watchErr != nil {
		os.Remove(path) // nothing was watched
		return watchErr
	}
	return closeErr
}

// judgingGCPercent is the garbage that may be there while a recording is judged, in percent of what is held.
const judgingGCPercent = 20

// diagnoseFiles prints the verdict of recordings, or of a packet capture, that the command line names.
func (a *app) diagnoseFiles(ctx context.Context, paths []string, asJSON bool) error {
	defer a.Scratch.Remove()
	a.InterruptEnds("there is no verdict")
	paths, err := a.WithCaptures(ctx, paths)
	if err != nil {
		return err
	}
	return a.diagnose(paths, asJSON)
}

// judge judges a recording, and shows how far it is.
func (a *app) judge(rec *recording.Recording) verdict.Diagnosis {
	calls, events := format.Count(len(rec.Calls), "call"), format.Count(rec.EventCount(), "event")
	what := fmt.Sprintf("judging %s and %s", calls, events)
	defer a.Working("%s", what)()
	return verdict.Stepwise(facts.New(rec), version, func(nth, of int) {
		a.Progress("%s: cause %d of %d", what, nth, of)
	})
}

// exitBy sets the exit code of a verdict.
func (a *app) exitBy(d verdict.Diagnosis) {
	if d.Verdict == verdict.Findings || a.expectHealthy && d.Verdict != verdict.Healthy {
		a.Code = cli.ExitFindings
	}
}

// diagnose prints the verdict of a recording, or of several as one, and sets the exit code.
func (a *app) diagnose(paths []string, asJSON bool) error {
	// The garbage of judging would be as much as the recording: a fifth of that costs about a sixth more CPU time.
	defer debug.SetGCPercent(debug.SetGCPercent(judgingGCPercent))
	rec, err := a.Recordings(paths, false)
	if err != nil {
		return err
	}
	d := a.judge(rec)
	a.exitBy(d)
	var printed error
	if asJSON {
		printed = report.JSON(a.Stdout, d)
	} else {
		printed = report.Text(a.Stdout, d, a.Style())
	}
	if a.page.file != nil {
		defer a.Working("writing %s", a.page.path)()
	}
	return errors.Join(printed, a.page.write(rec, d))
}
