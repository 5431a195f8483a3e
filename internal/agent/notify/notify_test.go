package notify_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/notify"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/memnet"
	"slowpath/internal/report"
)

// sink is a receiver that keeps what it got, and answers with the codes in turn, the last one for ever.
type sink struct {
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	codes  []int
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies, s.heads = append(s.bodies, string(b)), append(s.heads, r.Header)
	code := http.StatusOK
	if len(s.codes) > 0 {
		code = s.codes[min(len(s.bodies), len(s.codes))-1]
	}
	if code/100 == 3 {
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
	}
	w.WriteHeader(code)
}

func (s *sink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

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

// address is that of a receiver, wherever Dial leads.
const address = "http://127.0.0.1:80"

// started runs a notifier until the test ends.
func started(t testing.TB, o notify.Options, to ...string) (*notify.Notifier, *lines) {
	t.Helper()
	for _, one := range to {
		r, err := notify.Parse(one, false)
		if err != nil {
			t.Fatal(err)
		}
		o.Receivers = append(o.Receivers, r)
	}
	log := &lines{}
	o.Log = log.add
	n := notify.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { n.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return n, log
}

// diagnosed is a real verdict, of a recording of the corpus.
var diagnosed = sync.OnceValues(func() (d verdict.Diagnosis, err error) {
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		return d, err
	}
	defer os.RemoveAll(dir)
	rec, err := corpus.Read("server-cfs-throttled", dir)
	if err != nil {
		return d, err
	}
	return verdict.Diagnose(rec, "test"), nil
})

// judged is the verdict as the message of an incident.
func judged(t testing.TB, id string) notify.Message {
	t.Helper()
	d, err := diagnosed()
	if err != nil {
		t.Fatal(err)
	}
	var doc strings.Builder
	if err := report.JSON(&doc, d); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-20 * time.Second).UTC().Truncate(time.Millisecond)
	return notify.Of(incidents.Incident{
		ID: id, State: incidents.StateJudged, Start: start, End: start.Add(15 * time.Second), Target: "127.0.0.1:6379",
		Cause: d.Findings[0].Cause, Summary: d.Summary, Verdict: d.Verdict, SlowCalls: 817,
		Trigger: "817 slow calls of 3 callers in 10 s <!channel>",
	}, []byte(doc.String()), "http://127.0.0.1:7380/incidents/"+id)
}

// TestMessage: it has the sentence of the verdict, the numbers, the first step of the fix, and the link.
func TestMessage(t *testing.T) {
	m := judged(t, "20261124T031207Z-1")
	if m.Cause != "server-cfs-throttled" || !strings.HasPrefix(m.Summary, "The server's cgroup has too little CPU") ||
		m.Share < 0.9 || m.Certainty < 0.9 || m.P99Ns == 0 || m.MaxNs < 50e6 ||
		!strings.Contains(m.Fix, "cpu.cfs_quota_us") || m.Link == "" {
		t.Errorf("%+v", m)
	}
}

// TestPayloads: each format has the verdict, the numbers, the fix and the link; texts of others cannot make a mention.
func TestPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		n, log := started(t, notify.Options{Dial: memnet.Serve(t, s)}, address, "slack+"+address,
			"alertmanager+"+address+"/am")
		m := judged(t, "20261124T031207Z-1")
		m.Summary += " <!channel>"
		n.Send(m)
		synctest.Wait()
		if len(s.got()) != 3 || log.text() != "" {
			t.Errorf("%d messages: %s", len(s.got()), log.text())
		}
		for _, body := range s.got() {
			checkPayload(t, body)
		}
	})
}

func checkPayload(t *testing.T, body string) {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"too little CPU quota", "cfs_quota_us", "/incidents/20261124T031207Z-1", "817"} {
		if !strings.Contains(body, part) {
			t.Errorf("no %q in %s", part, body)
		}
	}
	switch d := doc.(type) {
	case []any:
		labels := d[0].(map[string]any)["labels"].(map[string]any)
		if labels["cause"] != "server-cfs-throttled" || labels["alertname"] != "SlowpathIncident" {
			t.Errorf("labels %v", labels)
		}
	case map[string]any:
		if text, ok := d["text"].(string); ok && strings.Contains(text, "<!channel>") {
			t.Errorf("Slack would tell the whole channel: %s", text)
		}
		if d["text"] == nil && d["schema"] != notify.Schema {
			t.Errorf("neither Slack nor JSON: %s", body)
		}
	}
}

// TestRetries: what fails for a moment is sent again, and only once; what is refused is not.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		codes       []int
		tries, sent int64
		after       time.Duration // until it is sent, or given up
		says        string
	}{
		{[]int{500, 503, 200}, 3, 1, 3 * time.Second, ""},
		{[]int{429, 200}, 2, 1, time.Second, ""},
		{[]int{400}, 1, 0, 0, "HTTP 400"},
		{[]int{302}, 1, 0, 0, "it redirects to 127.0.0.1:1, which is not followed"},
		{[]int{500}, 8, 0, 127 * time.Second, "HTTP 500"},
	} {
		t.Run(fmt.Sprint(c.codes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sink{codes: c.codes}
				n, log := started(t, notify.Options{Dial: memnet.Serve(t, s)}, address+"/secret-path")
				began := time.Now()
				n.Send(judged(t, "20261124T031207Z-1"))
				<-time.After(time.Hour)
				stats := n.Stats()
				if got := int64(len(s.got())); got != c.tries || stats.Sent != c.sent || stats.Failed != 1-c.sent {
					t.Errorf("%d tries, %+v", got, stats)
				}
				if took := cmp.Or(stats.LastSuccess, stats.LastError).Sub(began); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
				if !strings.Contains(log.text(), c.says) || strings.Contains(log.text(), "secret-path") {
					t.Errorf("the log says %q", log.text())
				}
			})
		})
	}
}

// TestDeadReceiver: it holds up nobody, what waits is bounded, and one line says so.
func TestDeadReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := memnet.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else its end is not noticed
			<-r.Context().Done()
		}))
		n, log := started(t, notify.Options{Dial: dial}, address)
		m := judged(t, "1")
		began := time.Now()
		for i := range 1000 {
			m.ID = fmt.Sprint(i)
			n.Send(m)
		}
		s := n.Stats()
		if s.Queued > 32 || s.Dropped < 1000-34 || strings.Count(log.text(), "\n") > 0 || log.text() == "" ||
			time.Since(began) > 0 {
			t.Errorf("%+v, %q, after %v", s, log.text(), time.Since(began))
		}
	})
}

// TestRateAndRepeats: an incident is told of once per verdict, and a receiver gets a bounded number of messages.
func TestRateAndRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		n, log := started(t, notify.Options{Dial: memnet.Serve(t, s), PerHour: 1}, address)
		m := judged(t, "first")
		n.Send(m)
		synctest.Wait()
		n.Send(m)
		healthy := m
		healthy.ID, healthy.Verdict = "healthy", verdict.Healthy
		n.Send(healthy)
		for i := range 20 {
			m.ID = fmt.Sprint(i)
			n.Send(m)
		}
		synctest.Wait()
		if s := n.Stats(); s.Sent != 10 || s.Dropped != 11 {
			t.Errorf("%+v: 10 are allowed at once, of 21", s)
		}
		if strings.Count(log.text(), "left out") != 1 {
			t.Errorf("log: %s", log.text())
		}
		<-time.After(time.Hour)
		m.ID = "an hour later"
		n.Send(m)
		synctest.Wait()
		if s := n.Stats(); s.Sent != 11 {
			t.Errorf("%+v an hour later, with 1 per hour", s)
		}
		for _, body := range s.got() {
			if strings.Contains(body, `"id":"healthy"`) {
				t.Error("it told of an incident in which nothing was wrong")
			}
		}
	})
}

// TestTakenBack: who was told of a first verdict is told when nothing was wrong after all, also where the first message
// has not arrived yet.
func TestTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{codes: []int{http.StatusServiceUnavailable, http.StatusOK}}
		n, _ := started(t, notify.Options{Dial: memnet.Serve(t, s)}, address)
		first := judged(t, "one")
		end := first.End
		first.State, first.End = incidents.StateWatching, time.Time{}
		n.Send(first)
		synctest.Wait()
		if got := s.got(); len(got) != 1 {
			t.Fatalf("%d tries", len(got))
		}
		last := first
		last.State, last.End, last.Verdict, last.Cause = incidents.StateJudged, end, verdict.Healthy, ""
		n.Send(last)
		<-time.After(time.Minute)
		if got := s.got(); len(got) != 3 || n.Stats().Sent != 2 ||
			!strings.Contains(got[len(got)-1], `"verdict":"healthy"`) {
			t.Errorf("the messages are %q", got)
		}
	})
}
