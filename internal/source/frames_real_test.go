package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/profile/stacks"
)

// TestFramesOfLibraries: what the libraries call the functions in which they wait for their pools, in the versions of
// the lab, is what the table of frames has.
func TestFramesOfLibraries(t *testing.T) {
	needs.Real(t)
	get := []clients.Command{{Args: []string{"GET", "key"}}}
	// which keeps connections without using a CPU
	blocking := []clients.Command{{Args: []string{"BLPOP", "queue", "1"}}}
	for _, tt := range []struct {
		client   clients.Name
		commands []clients.Command
		pool     int
		mode     protocol.Mode
		want     []string // ids, all of which some reading has
		always   bool     // and not in make test-long alone
	}{
		{clients.GoRedis6, blocking, 2, protocol.Standalone, []string{"go-redis-pool", "go-redis-reply"}, false},
		{clients.GoRedis8, blocking, 2, protocol.Standalone, []string{"go-redis-pool", "go-redis-reply"}, false},
		{clients.GoRedis9, blocking, 2, protocol.Standalone, []string{"go-redis-pool", "go-redis-reply"}, true},
		{clients.Redigo, blocking, 2, protocol.Standalone, []string{"redigo-pool", "redigo-reply"}, false},
		{clients.Rueidis, get, 0, protocol.Standalone, []string{"rueidis-reply", "rueidis-pipe"}, true},
		{clients.Rueidis, blocking, 2, protocol.Standalone, []string{"rueidis-pool"}, false},
		{clients.Jedis, blocking, 2, protocol.Standalone, []string{"pool2-wait", "jedis-reply"}, false},
		{clients.Lettuce6, blocking, 0, protocol.Standalone, []string{"lettuce-reply"}, false},
		{clients.Lettuce7, blocking, 0, protocol.Standalone, []string{"lettuce-reply"}, false},
	} {
		if !tt.always && !needs.InLong() {
			continue
		}
		t.Run(fmt.Sprintf("%s %s", tt.client, tt.commands[0].Args[0]), func(t *testing.T) {
			s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
			target := startProfiled(t, tt.client, clients.Options{
				Addresses: []string{s.Addr}, Mode: tt.mode, Workers: 30,
				PoolSize: tt.pool, Commands: tt.commands,
			})
			seen, all := meanings(t, target, tt.want)
			for _, id := range tt.want {
				if !slices.Contains(seen, id) {
					t.Errorf("no %s; seen are %v of\n%s", id, seen, strings.Join(all, "\n"))
				}
			}
		})
	}
}

// startProfiled starts a client of the lab, and gives the target that profiles it.
func startProfiled(t *testing.T, name clients.Name, o clients.Options) profile.Target {
	t.Helper()
	cache, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	program, err := cache.Get(t.Context(), name, t.Output())
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Listen = "127.0.0.1:0"
	run, err := program.Start(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Kill)
	ready, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := run.AwaitReady(ready); err != nil {
		t.Fatal(err)
	}
	where := run.Addr()
	if name == clients.Jedis || name == clients.Lettuce6 || name == clients.Lettuce7 {
		where = strconv.Itoa(run.PID)
	}
	ts, err := profile.Targets([]string{where})
	if err != nil {
		t.Fatal(err)
	}
	return ts[0]
}

// meanings reads where goroutines or threads are until all that is wanted was seen, for two minutes at most. all is the
// stacks with what is known of them.
func meanings(t *testing.T, target profile.Target, want []string) (seen, all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sink := &kinds{Recording: recording.New(), take: func(p recording.Profile) {
		if p.Kind != recording.ProfileGoroutine && p.Kind != recording.ProfileThreads {
			return
		}
		read, err := stacks.Read(p.Pprof)
		if err != nil {
			t.Error(err)
			return
		}
		for _, s := range read.Stacks {
			m, _ := stacks.Builtin().Of(s.Frames)
			if line := m.ID + ": " + strings.Join(s.Frames, " > "); !slices.Contains(all, line) {
				all = append(all, line)
			}
			if !slices.Contains(seen, m.ID) {
				seen = append(seen, m.ID)
			}
		}
		if !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(seen, id) }) {
			cancel()
		}
	}}
	s, err := opened(ctx, profile.Options{Targets: []profile.Target{target}, Clock: clock.New(), Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	s.Run(ctx)
	return seen, all
}

// opened tries again: on a busy machine a JVM does not answer at once.
func opened(ctx context.Context, o profile.Options) (*profile.Source, error) {
	for {
		s, err := profile.Open(ctx, o)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
	}
}

// kinds passes profiles on as they come, and drops all else.
type kinds struct {
	*recording.Recording
	take func(recording.Profile)
}

func (k *kinds) Profile(p recording.Profile)     { k.take(p) }
func (*kinds) Sample(recording.Sample)           {}
func (*kinds) ConnUse(string, recording.ConnUse) {}
func (*kinds) Event(recording.Event)             {}
func (*kinds) Snapshot(recording.Snapshot)       {}
func (*kinds) Histogram(recording.Histogram)     {}
func (*kinds) SetMeta(string, string)            {}
