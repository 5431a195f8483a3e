package source

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
	"slowpath/internal/wire/target"
)

// mainThreadSamples is a sink that keeps what is recorded of sampled processes.
type mainThreadSamples struct {
	restartCounter
	mu    sync.Mutex
	what  []recording.Profiled
	found map[int]int // samples of the thread with the event loop, by process
	other int         // samples of other threads
}

func (s *mainThreadSamples) Snapshot(snap recording.Snapshot) {
	if snap.Source != recording.SourceProfile {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	what, _ := recording.BodyOf[recording.Profiled](snap)
	s.what = append(s.what, what)
}

func (s *mainThreadSamples) Profile(p recording.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read, _ := stacks.Read(p.Pprof) // one that does not read has no samples
	for _, what := range s.what {
		if p.Subject != recording.ProcessPrefix+strconv.Itoa(what.PID) {
			continue
		}
		for _, st := range read.Stacks {
			if st.TID == int64(what.Loop) && slices.Contains(st.Frames, "aeMain") {
				s.found[what.PID]++
			} else if st.TID != int64(what.Loop) {
				s.other++
			}
		}
	}
}

// TestMainThreads: the main thread of a server is sampled without being asked for, and that of its next process, too.
func TestMainThreads(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	i := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	to, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	sink := &mainThreadSamples{found: map[int]int{}}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		o := Options{Targets: []target.Target{to}, NoProbe: true, NoTap: true, MainThreads: true}
		ended <- Run(ctx, o, sink)
	}()
	sampled := func() bool {
		// The server is at work until it is seen; an error reply of one that is loading is as good.
		_, _ = i.Do(ctx, "EVAL", "for i = 1, 300000 do redis.call('PING') end", "0")
		sink.mu.Lock()
		defer sink.mu.Unlock()
		return sink.found[i.PID] > 0
	}
	await.Until(t, "samples of the main thread", sampled)
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "samples of the next process", sampled)
	end()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if sink.other != 0 || slices.ContainsFunc(sink.what, func(p recording.Profiled) bool {
		return !p.LoopOnly || p.Node != i.Addr
	}) {
		t.Errorf("%d samples of other threads; %+v", sink.other, sink.what)
	}
}
