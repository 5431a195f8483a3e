//go:build linux

package benching

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/load/bench"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// slowFrom is the time from which on a call of a load goes into the recording one by one: the least from which doctor
// calls one slow (docs/decisions/0003-automatic-slow-threshold.md).
const slowFrom = 5 * time.Millisecond

// benchRecording is the recording of a load: its calls, and what the sources of a watch see of the server meanwhile.
type benchRecording struct {
	path   string
	file   *recording.Writer
	load   *bench.Recorder
	cancel context.CancelFunc
	ended  chan error
}

// startRecording makes the file, has the server watched, and returns when the watch is under way.
func (b *benching) startRecording(ctx context.Context) (*benchRecording, error) {
	path := b.flags.Record
	if path == "" {
		return nil, nil
	}
	file, err := recording.Create(path, 0)
	if err != nil {
		return nil, cli.Usage(err)
	}
	r := &benchRecording{path: path, file: file, ended: make(chan error, 1)}
	o := &b.options
	r.load = bench.NewRecorder(o, file, slowFrom)
	// a load that Ctrl-C ends is still watched to its end
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	started := make(chan struct{})
	w := source.Options{
		Targets: []target.Target{o.Load.Target}, Cluster: o.Load.Cluster, Slow: "auto", Version: b.app.Version,
		NoProbe: !b.flags.Probe, Timeout: source.DefaultTimeout, Clock: o.Load.Clock,
		Progress: func(s string) { b.app.Progress("%s", s) }, Started: func(int) { close(started) },
	}
	go func() { r.ended <- source.Run(ctx, w, file) }()
	select {
	case <-started:
		return r, nil
	case err := <-r.ended:
		r.ended <- nil
		r.discard()
		return nil, err
	}
}

// close ends the watch and the file.
func (r *benchRecording) close(a *named.CommandLine) error {
	r.load.Close()
	r.cancel()
	err := <-r.ended
	if closing := r.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("recording the load: %w", err)
	}
	a.Say(fmt.Sprintf("recorded in %s; why calls were slow: slowpath doctor %s", layout.OneLine(r.path),
		layout.OneLine(r.path)))
	return nil
}

// discard removes the recording of a load that never began.
func (r *benchRecording) discard() {
	r.load.Close()
	r.cancel()
	<-r.ended
	r.file.Close()
	cli.RemoveFile(r.path)
}
