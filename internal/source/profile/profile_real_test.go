package profile

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

func TestGoroutinesAndDelays(t *testing.T) {
	needs.Real(t)
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	_, target := served(t)
	var mu sync.Mutex
	contend := func() {
		mu.Lock()
		var waiter sync.WaitGroup
		waiter.Go(func() {
			mu.Lock()
			defer mu.Unlock()
		})
		await.Until(t, "a goroutine that waits", func() bool { return waiting() > 0 })
		mu.Unlock()
		waiter.Wait()
	}
	contend() // before the watch: not of it
	sink, end := profiling(t, 0, target)
	await.Until(t, "the first goroutines", func() bool { return slices.Contains(sink.kinds(), recording.ProfileGoroutine) })
	contend()
	end()
	if kinds := sink.kinds(); !slices.Contains(kinds, recording.ProfileMutex) || slices.Contains(kinds,
		recording.ProfileCPU) {
		t.Fatalf("kinds %v, blind spots %v", kinds, sink.blind())
	}
	for _, p := range sink.rec.Profiles {
		read, err := stacks.Read(p.Pprof)
		if err != nil {
			t.Fatalf("%s: %v", p.Kind, err)
		}
		if p.Kind == recording.ProfileMutex && read.Total(read.Column("delay")) <= 0 {
			t.Errorf("no delay in %+v", read)
		}
		if !strings.HasPrefix(p.Subject, recording.PprofPrefix+"127.0.0.1:") {
			t.Errorf("subject %s", p.Subject)
		}
	}
	snap, ok := sink.rec.SnapshotOf(recording.SourceProfile, sink.rec.Profiles[0].Subject, "application")
	if !ok || !strings.Contains(snap.Body, `"name":"profile.test"`) || strings.Contains(snap.Body, "-test.") {
		t.Errorf("application %+v", snap)
	}
	if !strings.Contains(strings.Join(sink.blind(), "\n"), "SetBlockProfileRate") {
		t.Errorf("that the program does not count blocking is not reported: %v", sink.blind())
	}
}

// waiting counts goroutines of this process that wait for a mutex.
func waiting() (n int) {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "[sync.Mutex.Lock")
}

func TestCPUProfile(t *testing.T) {
	needs.Real(t)
	_, target := served(t)
	sink, end := profiling(t, 2*time.Second, target)
	await.Until(t, "the CPU profile", func() bool { return slices.Contains(sink.kinds(), recording.ProfileCPU) })
	end()
	if s := sink.rec.Series(recording.SourceProfile, sink.rec.Profiles[0].Subject, "cpu_profile_ns"); len(s) != 1 ||
		s[0].Value != 1e9 {
		t.Errorf("%v", s)
	}
}

// TestRefusedCPUProfile: one program makes one CPU profile at a time.
func TestRefusedCPUProfile(t *testing.T) {
	needs.Real(t)
	s, target := served(t)
	other := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(other)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/debug/pprof/profile?seconds=60", nil)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}()
	defer func() { cancel(); <-other }()
	await.Until(t, "the other profiler", func() bool { return strings.Contains(goroutines(), "pprof.profileWriter") })
	sink, _ := profiling(t, 2*time.Second, target)
	await.Until(t, "the refusal", func() bool { return strings.Contains(strings.Join(sink.blind(), "\n"), "already in use") })
}

func goroutines() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
