package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/notify"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/verdict"
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

// await polls until ok, for at most 20 s.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 20 s: " + what)
		}
	}
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
	if o.FirstWait == 0 {
		o.FirstWait = time.Millisecond
	}
	n := notify.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { n.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return n, log
}

// judged is a real verdict, of a recording of the corpus, as the message of an incident.
func judged(t testing.TB, id string) notify.Message {
	t.Helper()
	rec := corpus.Open(t, "server-cfs-throttled")
	rec.Index()
	d := verdict.Diagnose(rec, "test")
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
	s := &sink{}
	server := httptest.NewServer(s)
	defer server.Close()
	n, log := started(t, notify.Options{}, server.URL, "slack+"+server.URL, "alertmanager+"+server.URL+"/am")
	m := judged(t, "20261124T031207Z-1")
	m.Summary += " <!channel>"
	n.Send(m)
	await(t, "three messages", func() bool { return n.Stats().Sent == 3 })
	for _, body := range s.got() {
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
	if log.text() != "" {
		t.Error(log.text())
	}
}

// TestRetries: what fails for a moment is sent again, and only once; what is refused is not.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		codes       []int
		tries, sent int64
		says        string
	}{
		{[]int{500, 503, 200}, 3, 1, ""},
		{[]int{429, 200}, 2, 1, ""},
		{[]int{400}, 1, 0, "HTTP 400"},
		{[]int{302}, 1, 0, "it redirects to 127.0.0.1:1, which is not followed"},
		{[]int{500}, 8, 0, "HTTP 500"},
	} {
		t.Run(fmt.Sprint(c.codes), func(t *testing.T) {
			s := &sink{codes: c.codes}
			server := httptest.NewServer(s)
			defer server.Close()
			n, log := started(t, notify.Options{}, server.URL+"/secret-path")
			n.Send(judged(t, "20261124T031207Z-1"))
			await(t, "an end", func() bool { return n.Stats().Sent+n.Stats().Failed == 1 })
			if got := int64(len(s.got())); got != c.tries || n.Stats().Sent != c.sent {
				t.Errorf("%d tries, %d sent", got, n.Stats().Sent)
			}
			if !strings.Contains(log.text(), c.says) || strings.Contains(log.text(), "secret-path") {
				t.Errorf("the log says %q", log.text())
			}
		})
	}
}

// TestDeadReceiver: it holds up nobody, what waits is bounded, and one line says so.
func TestDeadReceiver(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	n, log := started(t, notify.Options{}, server.URL)
	m := judged(t, "1")
	for i := range 1000 {
		m.ID = fmt.Sprint(i)
		n.Send(m)
	}
	s := n.Stats()
	if s.Queued > 32 || s.Dropped < 1000-34 || strings.Count(log.text(), "\n") > 0 || log.text() == "" {
		t.Errorf("%+v, %q", s, log.text())
	}
}

// TestRateAndRepeats: an incident is told of once per verdict, and a receiver gets a bounded number of messages.
func TestRateAndRepeats(t *testing.T) {
	s := &sink{}
	server := httptest.NewServer(s)
	defer server.Close()
	n, log := started(t, notify.Options{PerHour: 1}, server.URL)
	m := judged(t, "first")
	n.Send(m)
	await(t, "the first message", func() bool { return n.Stats().Sent == 1 })
	n.Send(m)
	healthy := m
	healthy.ID, healthy.Verdict = "healthy", verdict.Healthy
	n.Send(healthy)
	for i := range 20 {
		m.ID = fmt.Sprint(i)
		n.Send(m)
	}
	await(t, "all are sent or dropped", func() bool { return n.Stats().Sent+n.Stats().Dropped == 21 })
	if s := n.Stats(); s.Sent != 10 {
		t.Errorf("%d messages were sent, 10 are allowed at once", s.Sent)
	}
	if strings.Count(log.text(), "left out") != 1 {
		t.Errorf("log: %s", log.text())
	}
	for _, body := range s.got() {
		if strings.Contains(body, `"id":"healthy"`) {
			t.Error("it told of an incident in which nothing was wrong")
		}
	}
}

// TestTakenBack: who was told of a first verdict is told when nothing was wrong after all, also where the first message
// has not arrived yet.
func TestTakenBack(t *testing.T) {
	s := &sink{codes: []int{http.StatusServiceUnavailable, http.StatusOK}}
	server := httptest.NewServer(s)
	defer server.Close()
	n, _ := started(t, notify.Options{FirstWait: 200 * time.Millisecond}, server.URL)
	first := judged(t, "one")
	end := first.End
	first.State, first.End = incidents.StateWatching, time.Time{}
	n.Send(first)
	await(t, "the first try", func() bool { return len(s.got()) == 1 })
	last := first
	last.State, last.End, last.Verdict, last.Cause = incidents.StateJudged, end, verdict.Healthy, ""
	n.Send(last)
	await(t, "both messages", func() bool { return n.Stats().Sent == 2 })
	if got := s.got(); !strings.Contains(got[len(got)-1], `"verdict":"healthy"`) {
		t.Errorf("the last message is %s", got[len(got)-1])
	}
}
