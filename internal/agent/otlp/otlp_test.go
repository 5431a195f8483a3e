package otlp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/memnet"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

type hand struct{ atomic.Int64 }

func (h *hand) Now() int64 { return h.Load() }

// watched is a view, and a function that gives it a recorded incident once more, as calls of later seconds.
type watched struct {
	*live.View
	rec   *recording.Recording
	clock *hand
	round int64
}

func newWatched(t testing.TB) *watched {
	rec := corpus.Open(t, "server-cfs-throttled")
	rec.Index()
	clock := &hand{}
	_, end := rec.Window()
	clock.Store(end)
	return &watched{View: live.New(live.Options{Clock: clock}), rec: rec, clock: clock}
}

func (w *watched) again() {
	shift := w.round * 30e9
	_, end := w.rec.Window()
	w.clock.Store(end + shift + 15e9)
	for _, h := range w.rec.Histograms {
		h.Second += shift / 1e9
		w.Histogram(h)
	}
	for _, c := range w.rec.Calls {
		segments := w.rec.SegmentsOf(c.ID)
		for i := range segments {
			segments[i].FromNs += shift
			segments[i].ToNs += shift
		}
		c.IntendedNs, c.StartNs, c.EndNs = c.IntendedNs+shift, c.StartNs+shift, c.EndNs+shift
		w.Call(c, segments...)
	}
	w.round++
}

// wake gives a row of a later second, which wakes who subscribed.
func (w *watched) wake() {
	w.clock.Add(1e9)
	w.Call(recording.Call{Source: recording.SourceProbe, IntendedNs: w.clock.Now(), EndNs: w.clock.Now()})
}

// started runs an exporter until the test, or stop, ends it.
func started(t testing.TB, o otlp.Options) (e *otlp.Exporter, log *lines, stop func()) {
	t.Helper()
	log = &lines{}
	o.Log = log.add
	e, err := otlp.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return e, log, stop
}

func endpoint(t testing.TB, text string, f otlp.Files) otlp.Endpoint {
	t.Helper()
	e, err := otlp.Parse(text, f, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// inMemory is an endpoint whose collector answers in memory.
func inMemory(t *testing.T, f otlp.Files, answer http.HandlerFunc) otlp.Endpoint {
	t.Helper()
	to := endpoint(t, "http://127.0.0.1:4318", f)
	to.Dial = memnet.Serve(t, answer)
	return to
}

// takesAll is a collector that takes what it gets.
func takesAll(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// TestDeadCollector: one line for spans and one for metrics says so, what waits is bounded, and nobody waits.
func TestDeadCollector(t *testing.T) {
	for _, address := range []string{"grpc://127.0.0.1:1", "http://127.0.0.1:1"} {
		t.Run(address, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t)
				m := metrics.New(metrics.Options{View: w.View})
				e, log, stop := started(t, otlp.Options{
					Endpoint: endpoint(t, address, otlp.Files{}), View: w.View, Metrics: m.Gatherer(),
					SpansPerMinute: 1 << 20, BytesPerDay: -1,
				})
				for range 9 {
					w.again()
					<-time.After(10 * time.Second)
				}
				if s, _, _, _ := e.Stats(); s.Queued > 0 || s.Failed+s.Dropped == 0 {
					t.Errorf("%+v while it is away", s)
				}
				began := time.Now()
				stop()
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("the end took %v, whatever waits", took)
				}
				<-time.After(time.Hour) // what waited is given up
				if strings.Count(log.text(), "does not take") != 2 {
					t.Error(log.text())
				}
				spans, pushes, _, _ := e.Stats()
				if spans.Failed == 0 || pushes.Failed == 0 || spans.Sent+pushes.Sent > 0 {
					t.Errorf("%+v %+v", spans, pushes)
				}
			})
		})
	}
}

// TestSpansAreBounded: no more than allowed, whole calls only; a trace is known by its id only if it was made.
func TestSpansAreBounded(t *testing.T) {
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("# of the collector\nAuthorization: Bearer secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var bodies, traces atomic.Int64
		to := inMemory(t, otlp.Files{Headers: headers}, func(w http.ResponseWriter, r *http.Request) {
			bodies.Add(1)
			if r.Header.Get("Authorization") == "Bearer secret" {
				traces.Add(1)
			}
			takesAll(w, r)
		})
		w := newWatched(t)
		e, log, stop := started(t, otlp.Options{Endpoint: to, View: w.View, SpansPerMinute: 100})
		synctest.Wait() // it has subscribed
		w.again()
		w.wake()
		<-time.After(11 * time.Second) // a sample is taken each ten
		made := 0
		for _, c := range w.Slow(1 << 20) {
			if id := e.TraceID(c.Call); id != "" {
				made++
				if len(id) != 32 {
					t.Errorf("the id of a trace is %q", id)
				}
			}
		}
		stop()
		s, _, _, _ := e.Stats()
		if s.Sent == 0 || s.Sent > 100 || s.Dropped == 0 || s.Queued != 0 || s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
		if made == 0 || made > int(s.Sent) || bodies.Load() == 0 || traces.Load() != bodies.Load() {
			t.Errorf("%d traces of %d spans; %d of %d requests had the header", made, s.Sent, traces.Load(),
				bodies.Load())
		}
		t.Logf("%d spans of %d calls took %d bytes on the wire: %d each", s.Sent, made, s.Bytes, s.Bytes/s.Sent)
		if log.text() != "" {
			t.Error(log.text())
		}
	})
}

// TestBytesPerDay: a collector that takes all gets no more than a tenth of a day's bytes at once, and one line says
// why.
func TestBytesPerDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		e, log, _ := started(t, otlp.Options{
			Endpoint: inMemory(t, otlp.Files{}, takesAll), View: w.View, SpansPerMinute: 1 << 20, BytesPerDay: 1 << 20,
		})
		for range 6 {
			w.again()
			<-time.After(5 * time.Second)
		}
		if !strings.Contains(log.text(), "as much was sent as --otlp-bytes-per-day allows") ||
			strings.Count(log.text(), "\n") > 0 {
			t.Error(log.text())
		}
		s, _, _, _ := e.Stats()
		if most := int64(1<<20) / 2 / 10; s.Bytes < most || s.Bytes > 2*most {
			t.Errorf("%d bytes of spans were sent, %d are allowed at once", s.Bytes, most)
		}
	})
}

// TestDayOfMetrics: pushes of an agent with a hundred callers, thirty commands and six nodes, one per minute, are below
// the bound of a day.
func TestDayOfMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		m := metrics.New(metrics.Options{View: w.View})
		for i := range 300 {
			w.ConnUse(fmt.Sprintf("10.0.%d.1:1234", i), recording.ConnUse{Calls: int64(i)})
		}
		for _, h := range w.rec.Histograms {
			for n := range 6 {
				h.Node = fmt.Sprintf("10.1.0.%d:6379", n)
				w.Histogram(h)
			}
		}
		w.again()
		e, _, _ := started(t, otlp.Options{
			Endpoint: inMemory(t, otlp.Files{}, takesAll), View: w.View, Metrics: m.Gatherer(), SpansPerMinute: -1,
		})
		const minutes = 10
		<-time.After(minutes*time.Minute + time.Second)
		_, pushes, _, _ := e.Stats()
		perDay := pushes.Bytes / minutes * 24 * 60
		if pushes.Sent != minutes || perDay > otlp.DefaultBytesPerDay/2 {
			t.Errorf("%+v: %d bytes per day", pushes, perDay)
		}
		t.Logf("%d pushes are %d bytes on the wire, a day of them %.1f MB", minutes, pushes.Bytes, float64(perDay)/1e6)
	})
}

// TestParse: what is refused, and how that is said.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"grpcs://collector.example":        "grpcs://collector.example:4317",
		"https://collector.example/base/":  "https://collector.example:4318/base",
		"http://localhost":                 "http://localhost:4318",
		"grpc://[::1]:9999":                "grpc://[::1]:9999",
		"https://collector.example:443/v1": "https://collector.example:443/v1",
	} {
		if e, err := otlp.Parse(text, otlp.Files{}, false); err != nil || e.String() != want {
			t.Errorf("%s: %s, %v", text, e, err)
		}
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		text  string
		files otlp.Files
		want  string
	}{
		{"http://collector.example", otlp.Files{}, "is not encrypted"},
		{"grpc://10.0.0.1:4317", otlp.Files{}, "use grpcs://"},
		{"collector.example:4317", otlp.Files{}, "that is no address"},
		{"tcp://127.0.0.1:1", otlp.Files{}, "is not known"},
		{"grpcs://collector.example/v1", otlp.Files{}, "gRPC has no path"},
		{"https://user:secret@collector.example", otlp.Files{}, "--otlp-headers"},
		{"https://collector.example", otlp.Files{Headers: file("h", "X: 1\nsecret")}, "line 2 of"},
		{"https://collector.example", otlp.Files{CA: file("ca", "secret")}, "no certificate"},
		{"https://collector.example", otlp.Files{Cert: file("c", "secret")}, "both --otlp-cert"},
		{"https://collector.example", otlp.Files{Headers: "/does/not/exist"}, "no such file"},
	} {
		_, err := otlp.Parse(c.text, c.files, false)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %+v: %v", c.text, c.files, err)
		}
	}
	for _, o := range []otlp.Options{{Interval: time.Second}, {BytesPerDay: 1000}} {
		if err := o.Validate(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
