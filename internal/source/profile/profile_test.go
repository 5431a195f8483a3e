package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// served is this process with net/http/pprof, which is what applications have.
func served(t *testing.T) (*httptest.Server, Target) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s, one(t, s.URL)
}

func one(t *testing.T, text string) Target {
	t.Helper()
	ts, err := Targets([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	return ts[0]
}

// locked makes an in-memory recording safe for several goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) { l.do(func() { l.rec.Call(c, s...) }) }

func (l *locked) Histogram(h recording.Histogram) { l.do(func() { l.rec.Histogram(h) }) }
func (l *locked) Sample(s recording.Sample)       { l.do(func() { l.rec.Sample(s) }) }
func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.do(func() { l.rec.ConnUse(client, u) })
}
func (l *locked) Event(e recording.Event)       { l.do(func() { l.rec.Event(e) }) }
func (l *locked) Snapshot(s recording.Snapshot) { l.do(func() { l.rec.Snapshot(s) }) }

func (l *locked) Profile(p recording.Profile) { l.do(func() { l.rec.Profile(p) }) }

func (l *locked) SetMeta(k, v string) { l.do(func() { l.rec.SetMeta(k, v) }) }

func (l *locked) kinds() (kinds []string) {
	l.do(func() {
		for _, p := range l.rec.Profiles {
			kinds = append(kinds, p.Kind)
		}
	})
	return kinds
}

func (l *locked) blind() (out []string) {
	l.do(func() {
		for _, e := range l.rec.Events {
			b := recording.DetailOf[recording.BlindSpot](e)
			out = append(out, b.What+": "+b.Why+"; "+b.Enable)
		}
	})
	return out
}

// profiling runs the source until the test says so.
func profiling(t *testing.T, length time.Duration, targets ...Target) (*locked, func()) {
	t.Helper()
	sink := &locked{rec: recording.New()}
	s, err := Open(t.Context(), Options{Targets: targets, For: length, Clock: clock.New(), Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	end := func() { cancel(); <-ended }
	t.Cleanup(end)
	return sink, end
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func TestGoroutinesAndDelays(t *testing.T) {
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
		await(t, "a goroutine that waits", func() bool { return waiting() > 0 })
		mu.Unlock()
		waiter.Wait()
	}
	contend() // before the watch: not of it
	sink, end := profiling(t, 0, target)
	await(t, "the first goroutines", func() bool { return slices.Contains(sink.kinds(), recording.ProfileGoroutine) })
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
	_, target := served(t)
	sink, end := profiling(t, 2*time.Second, target)
	await(t, "the CPU profile", func() bool { return slices.Contains(sink.kinds(), recording.ProfileCPU) })
	end()
	if s := sink.rec.Series(recording.SourceProfile, sink.rec.Profiles[0].Subject, "cpu_profile_ns"); len(s) != 1 ||
		s[0].Value != 1e9 {
		t.Errorf("%v", s)
	}
}

// TestRefusedCPUProfile: one program makes one CPU profile at a time.
func TestRefusedCPUProfile(t *testing.T) {
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
	await(t, "the other profiler", func() bool { return strings.Contains(goroutines(), "pprof.profileWriter") })
	sink, _ := profiling(t, 2*time.Second, target)
	await(t, "the refusal", func() bool { return strings.Contains(strings.Join(sink.blind(), "\n"), "already in use") })
}

func goroutines() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			"<html>welcome</html>")
	}))
	t.Cleanup(html.Close)
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	away := httptest.NewServer(http.RedirectHandler("http://elsewhere.invalid/", http.StatusFound))
	t.Cleanup(away.Close)
	redis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	go func() {
		for c, err := redis.Accept(); err == nil; c, err = redis.Accept() {
			fmt.Fprint(c, "-ERR unknown command\r\n")
			c.Close()
		}
	}()
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string]struct {
		err  error
		text string
	}{
		html.URL:                          {ErrNotPprof, "is not a profile"},
		nothing.URL:                       {ErrNotPprof, "404"},
		away.URL:                          {ErrNotPprof, "302"},
		"http://" + redis.Addr().String(): {ErrNotPprof, "does not speak HTTP"},
		gone.URL:                          {ErrUnreachable, "connection refused"},
	} {
		with := strings.Replace(url, "http://", "http://me:secret@", 1)
		_, err := Open(t.Context(), Options{Targets: []Target{one(t, with)}, Clock: clock.New(), Sink: recording.New()})
		if !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.text) || strings.Contains(err.Error(),
			"secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestEndlessProfile: an application whose answer has no end is not read on.
func TestEndlessProfile(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		zeros := make([]byte, 1<<16)
		for r.Context().Err() == nil {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	_, err := Open(t.Context(), Options{
		Targets: []Target{one(t, endless.URL)}, Clock: clock.New(), Sink: recording.New(),
	})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d bytes", maxAnswers)) {
		t.Errorf("%v", err)
	}
}
