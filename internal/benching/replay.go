//go:build linux

package benching

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/format"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
	"slowpath/internal/report/layout"
)

// Replay are those of a load that replays a log.
type Replay struct {
	File     string
	Speed    string
	RealKeys bool
}

const (
	// of the keys, unless --key-prefix is given, so that those of other loads are not removed with them
	replayPrefix  = "replay:"
	fastest       = "max"
	mostSpeed     = 1e6
	mostByDefault = 1000 // of a replay without --connections
)

// check refuses what does not go with a log, before it is read.
func (f *Replay) check(b *Options) error {
	given := b.Experiment.Given.Changed
	if f.File == "" {
		for _, name := range []string{"replay-speed", "real-keys"} {
			if given(name) {
				return cli.Usagef("--%s is for --replay: add it, or leave this out", name)
			}
		}
		return nil
	}
	for _, rule := range []struct {
		why   string
		names []string
	}{
		{"the log has the commands and their keys", []string{
			"command", "ratio", "value-size", "value-data", "expire",
			"prefill", "verify",
		}},
		{"the log says when calls are due, and --replay-speed how fast", []string{
			"rate", "ramp", "schedule",
			"arrivals",
		}},
		{"each client of the log keeps its connection", []string{
			"per-call", "reconnect-every", "cold-start", "pool",
			"pool-workers", "subscribers", "pipeline-mode",
		}},
		{"a replay is one load; --repeat and --compare make it several times", []string{"sweep", "find-max"}},
	} {
		for _, name := range rule.names {
			if given(name) {
				return cli.Usagef("--replay does not go with --%s: %s", name, rule.why)
			}
		}
	}
	if f.RealKeys && given("key-prefix") {
		return cli.Usagef("--real-keys sends the keys as they are: leave out --key-prefix")
	}
	_, err := f.pace()
	return err
}

// pace is load.Options.ReplaySpeed.
func (f *Replay) pace() (float64, error) {
	if f.Speed == fastest {
		return 0, nil
	}
	v, err := strconv.ParseFloat(f.Speed, 64)
	if err != nil || !(v > 0 && v <= mostSpeed) || math.IsInf(1/v, 0) {
		return 0, cli.Usagef("--replay-speed %q: give 1 for the pace of the log, another number for so many times as "+
			"fast, or %s", f.Speed, fastest)
	}
	return v, nil
}

// read reads the log into the options of the load.
func (f *Replay) read(ctx context.Context, a *named.CommandLine, b *Options) (err error) {
	if f.File == "" {
		return nil
	}
	o := workload.ReplayOptions{
		KeyPrefix: cmp.Or(b.Work.KeyPrefix, replayPrefix), KeepKeys: f.RealKeys,
		Dangerous: b.Work.Dangerous, Cluster: b.Load.Cluster, Seed: b.Load.Seed,
	}
	if o.Keys, err = b.Work.keyRange(); err != nil {
		return err
	}
	a.Progress("reading %s", f.File)
	defer a.ProgressDone()
	ended := make(chan error, 1)
	go func() { // a pipe may hold the log back
		log, err := f.open(a, o, b)
		b.Load.Replay = log
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	b.Load.ReplaySpeed, err = f.pace()
	if !b.Experiment.Given.Changed("connections") {
		b.Load.Connections = min(b.Load.Replay.Clients(), mostByDefault)
	}
	return err
}

// open finds out from the file itself what it is.
func (f *Replay) open(a *named.CommandLine, o workload.ReplayOptions, b *Options) (*workload.Replay, error) {
	in := a.Stdin
	if f.File != "-" {
		file, err := os.Open(f.File)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usagef("--replay: no such file: %s; redis-cli monitor > FILE makes one", f.File)
		}
		if err != nil {
			return nil, cli.Usagef("--replay: %w", err)
		}
		defer file.Close()
		in = file
	}
	text := bufio.NewReaderSize(in, 1<<20)
	const sqlite = "SQLite format 3\x00" // of a recording (sqlite.org/fileformat.html)
	if head, _ := text.Peek(len(sqlite)); string(head) == sqlite {
		return f.recorded(a, o)
	}
	for _, name := range []string{"keys", "key-distribution"} {
		if b.Experiment.Given.Changed(name) {
			return nil, cli.Usagef("--replay: the log has keys of its own, and --%s is for recordings, which "+
				"have none: leave it out", name)
		}
	}
	log, err := workload.ReadMonitor(text, o)
	if err != nil {
		return nil, cli.Usagef("--replay %s: %w", f.File, err)
	}
	return log, nil
}

func (f *Replay) recorded(a *named.CommandLine, o workload.ReplayOptions) (*workload.Replay, error) {
	if f.File == "-" {
		return nil, cli.Usagef("--replay -: a recording is not read from stdin: name its file")
	}
	rec, err := a.Recording(f.File)
	if err != nil {
		return nil, err
	}
	log, err := workload.ReadRecording(rec, o)
	if err != nil {
		return nil, cli.Usagef("--replay %s: %w", f.File, err)
	}
	return log, nil
}

// said is the flags as they were given, for the result.
func (f *Replay) said(keyPrefix string) any {
	return struct {
		Replay    string `json:"replay"`
		Speed     string `json:"replay_speed"`
		KeyPrefix string `json:"key_prefix,omitempty"`
		RealKeys  bool   `json:"real_keys,omitempty"`
	}{f.File, f.Speed, keyPrefix, f.RealKeys}
}

// lasts is how long a load is meant to take; 0 where it is not known before.
func lasts(o *engine.Options) time.Duration {
	if o.Replay == nil {
		return o.Duration
	}
	played := o.Replay.Lasts(o.Requests, o.ReplaySpeed)
	if o.Duration > 0 && (!o.Paced() || o.Duration < played) {
		return o.Duration
	}
	return played
}

// work is what the load sends.
func (b *benching) work() bench.Workload {
	if log := b.options.Load.Replay; log != nil {
		return log
	}
	return b.options.Load.Workload
}

// asks reports whether a server with keys of others is to be loaded only if somebody says so.
func (b *benching) asks(remote string) bool {
	return !b.flags.Yes && (b.flags.Replay.RealKeys || !loopback(b.options.Load.Target, remote))
}

// whyAsk says why, of a server with so many keys.
func (b *benching) whyAsk(keys int64) string {
	addr := layout.OneLine(b.options.Load.Target.Addr())
	held := format.Count(keys, "key") + ", some"
	if keys == 1 {
		held = "1 key"
	}
	if b.flags.Replay.RealKeys {
		return fmt.Sprintf("%s holds %s not of a load, and --real-keys may write to them", addr, held)
	}
	return fmt.Sprintf("%s is not on this host and holds %s not of a load: others may use it, and a load "+
		"slows them down", addr, held)
}
