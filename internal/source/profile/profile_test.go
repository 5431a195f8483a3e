package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
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

func (l *locked) Sample(s recording.Sample) { l.do(func() { l.rec.Sample(s) }) }

func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.do(func() { l.rec.ConnUse(client, u) })
}

func (l *locked) Event(e recording.Event) { l.do(func() { l.rec.Event(e) }) }

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
			_, _ = c.Read(make([]byte, 4096)) // as a server does, it answers a request
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
