package web_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/web"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// TestParametersAreBounded: each parameter has its bounds, and an error names it in one sentence.
func TestParametersAreBounded(t *testing.T) {
	s := start(t, web.Options{})
	long := strings.Repeat("x", 300)
	for path, want := range map[string]string{
		"/api/v1/incidents?limit=0":                       "limit",
		"/api/v1/incidents?limit=100000000000000000000":   "limit",
		"/api/v1/incidents?limit=-1":                      "limit",
		"/api/v1/incidents?q=" + long:                     "q is longer",
		"/api/v1/incidents?before=../../etc/passwd":       "before",
		"/api/v1/incidents?from=yesterday":                "RFC 3339",
		"/api/v1/incidents?from=9999-12-31T00:00:00Z":     "from",
		"/api/v1/overview?columns=401":                    "columns",
		"/api/v1/overview?columns=0":                      "columns",
		"/api/v1/overview?from=0":                         "apart",
		"/api/v1/overview?range=32d":                      "range",
		"/api/v1/overview?range=-5m":                      "range",
		"/api/v1/overview?range=1000000000h":              "range",
		"/api/v1/overview?from=2026-01-02T00:00:00Z&to=1": "from is not before to",
		"/api/v1/overview?whose=everybody":                "whose",
		"/api/v1/overview?node=" + long:                   "node is longer",
		"/api/v1/slow?limit=1001":                         "limit",
		"/api/v1/slow?limit=1e3":                          "limit",
		"/api/v1/marks?from=x":                            "from",
		"/api/v1/compare":                                 "mark=TIME",
		"/api/v1/compare?mark=now":                        "mark",
		"/api/v1/compare?mark=0&window=1s":                "window",
		"/api/v1/compare?before=x&after=now":              "before",
	} {
		got := s.ask("GET", path, "")
		if said := got.failure(t); got.code != 400 || !strings.Contains(said, want) || strings.Contains(said, "\n") {
			t.Errorf("%.80s: %d %q, want %q", path, got.code, said, want)
		}
	}
	if got := s.ask("GET", "/api/v1/slow?x="+strings.Repeat("y", 5000), ""); got.code != 414 {
		t.Errorf("an address of 5 kB: %d", got.code)
	}
	if got := s.ask("GET", "/nothing"+strings.Repeat("/<script>", 40), ""); got.code != 404 ||
		strings.Contains(got.body, "<script>") {
		t.Errorf("an address with markup: %d %s", got.code, got.body)
	}
	if got := s.ask("DELETE", "/api/v1/marks", ""); got.code != 405 || got.header.Get("Allow") == "" {
		t.Errorf("DELETE: %d", got.code)
	}
}

// TestBodiesAreBounded: what is posted is small, JSON, and of the fields that are known.
func TestBodiesAreBounded(t *testing.T) {
	s := start(t, web.Options{Trigger: func(string) (string, error) { return "20261124T031207Z-1", nil }})
	for body, want := range map[string]string{
		`{"text":"` + strings.Repeat("x", 100_000) + `"}`: "longer than",
		`{"text":"` + strings.Repeat("x", 201) + `"}`:     "text is longer",
		`{"text":"x","time":"tomorrow"}`:                  "RFC 3339",
		`{"text":"x","time":"2199-01-01T00:00:00Z"}`:      "future",
		`{"text":"x","more":1}`:                           "more",
		`{"text":"x"}{"text":"y"}`:                        "more than one",
		`{"text":" "}`:                                    "no text",
		`{}`:                                              "no text",
		``:                                                "no text",
		`<xml/>`:                                          "JSON",
		strings.Repeat("[", 60_000):                       "JSON",
	} {
		got := s.ask("POST", "/api/v1/marks", body, "Content-Type: application/json")
		if said := got.failure(t); got.code != 400 || !strings.Contains(said, want) {
			t.Errorf("%.40s: %d %q, want %q", body, got.code, said, want)
		}
	}
	got := s.ask("POST", "/incidents", `{"reason":"`+strings.Repeat("x", 201)+`"}`, "Content-Type: application/json")
	if got.code != 400 || !strings.Contains(got.failure(t), "reason") {
		t.Errorf("a long reason: %d %s", got.code, got.body)
	}
}

// TestPathsOfIncidents: what is no id of an incident gets nothing, whatever it points to.
func TestPathsOfIncidents(t *testing.T) {
	s := start(t, web.Options{})
	for _, id := range []string{
		"..", "../../../etc/passwd", "20261124T031207Z-1/../../x", "20261124T031207Z-1%00", ".", "%2e%2e", "x",
		"..%2f..%2fmarks.json", "20261124T031207Z", "20261124T031207Z-1234567", "20261124T031207Z-1\u202e",
		`..\..\marks.json`, "~root", "20261124T031207Z-1 ",
	} {
		for _, path := range []string{
			"/incidents/%s", "/api/v1/incidents/%s", "/api/v1/incidents/%s/recording", "/api/v1/incidents/%s/report",
		} {
			at := fmt.Sprintf(path, url.PathEscape(id))
			if got := s.ask("GET", at, ""); got.code != 404 && got.code/100 != 3 {
				t.Errorf("%s: %d %.100s", at, got.code, got.body)
			}
			if got := s.ask("GET", fmt.Sprintf(path, strings.ReplaceAll(id, " ", "+")), ""); got.code == 200 &&
				id != ".." && id != "." { // those are the address above
				t.Errorf(path+": %d", id, got.code)
			}
		}
	}
}

// TestLinkedIncident: a link in the place of an incident, or of one of its files, is followed by no address, wherever
// it leads; what is said of it names no path of the host.
func TestLinkedIncident(t *testing.T) {
	dir, secret := t.TempDir(), t.TempDir()
	s := start(t, web.Options{Store: manyIncidentsIn(t, dir, 2)})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	id, other := filepath.Join(dir, entries[0].Name()), filepath.Join(dir, entries[1].Name())
	names := []string{"diagnosis.json", "recording.slowpath", "report.html"}
	for _, in := range []string{secret, other} {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(in, name), []byte("root:secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(what string) {
		t.Helper()
		for _, end := range []string{"", "/recording", "/report", "/report?download=1"} {
			got := s.ask("GET", "/api/v1/incidents/"+entries[0].Name()+end, "")
			if got.code == 200 || strings.Contains(got.body, "root:") || strings.Contains(got.body, filepath.Dir(dir)) {
				t.Errorf("%s, %s: %d %.200s", what, end, got.code, got.body)
			}
		}
		if got := s.ask("GET", "/incidents/"+entries[0].Name(), ""); strings.Contains(got.body, "root:") {
			t.Errorf("%s: the page: %.200s", what, got.body)
		}
	}
	for _, to := range []string{secret, other, entries[1].Name(), "/proc/self/cwd"} {
		if err := errors.Join(os.RemoveAll(id), os.Symlink(to, id)); err != nil {
			t.Fatal(err)
		}
		ask("the incident is a link to " + to)
	}
	for _, to := range []string{secret, other, "../" + entries[1].Name()} {
		if err := errors.Join(os.RemoveAll(id), os.Mkdir(id, 0o700)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Symlink(filepath.Join(to, name), filepath.Join(id, name)); err != nil {
				t.Fatal(err)
			}
		}
		ask("its files are links into " + to)
	}
}

// TestSlowRequests: who sends a request byte by byte, or a head without end, is cut off; the others are answered
// meanwhile.
func TestSlowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, web.Options{})
		began := time.Now()
		var ended sync.WaitGroup
		for range 20 {
			c := s.dial()
			ended.Go(func() { _, _ = io.Copy(c, &slowHead{}) })
			ended.Go(func() {
				if _, err := io.ReadAll(c); err != nil {
					t.Errorf("it was not cut off: %v", err)
				}
			})
		}
		<-time.After(4 * time.Second)
		if got := s.ask("GET", "/healthz", ""); got.code != 200 || time.Since(began) > 4*time.Second {
			t.Errorf("meanwhile: %d, after %v", got.code, time.Since(began))
		}
		ended.Wait()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("they are cut off after %v", took)
		}
		c := s.dial()
		go func() { // until it is cut off
			line := "X: " + strings.Repeat("y", 1000) + "\r\n"
			_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n"+strings.Repeat(line, 64))
		}()
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && reply.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a head of 64 kB: %d", reply.StatusCode)
		}
	})
}

// slowHead is the head of a request, a byte per 100 ms, without an end.
type slowHead struct{ n int }

// Read implements io.Reader.
func (h *slowHead) Read(p []byte) (int, error) {
	const head = "GET / HTTP/1.1\r\nHost: localhost\r\nX: "
	<-time.After(100 * time.Millisecond)
	p[0] = 'y'
	if h.n < len(head) {
		p[0] = head[h.n]
	}
	h.n++
	return 1, nil
}

// feed gives a view calls of a user for some seconds.
func feed(t testing.TB, v *live.View, seconds int) {
	t.Helper()
	now := time.Now().Unix()
	for i := range seconds {
		end := (now - int64(i)) * 1e9
		v.Call(recording.Call{
			Source: recording.SourceTap, Op: "GET", Node: "127.0.0.1:6379", Conn: "127.0.0.1:50000",
			Client: "shop[17]", IntendedNs: end - 20e6, StartNs: end - 20e6, EndNs: end,
		}, recording.Segment{
			Actor: recording.Server, State: recording.Throttled, FromNs: end - 19e6, ToNs: end - 1e6,
		})
	}
}

// stream reads events of /api/v1/live until the test ends.
func (s *site) stream(t *testing.T, got func(web.Live)) (code int) {
	reply, err := s.client.Get(s.url + "/api/v1/live")
	if err != nil {
		t.Error(err)
		return 0
	}
	t.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != 200 {
		reply.Body.Close()
		return reply.StatusCode
	}
	go func() {
		in := bufio.NewScanner(reply.Body)
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			var e web.Live
			if ok && json.Unmarshal([]byte(data), &e) == nil && e.Schema == web.LiveSchema {
				got(e)
			}
		}
	}()
	return reply.StatusCode
}

// TestHundredBrowsers: a hundred pages see live calls at once; beyond the bound a page gets an error, and what is asked
// otherwise is answered.
func TestHundredBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := live.New(live.Options{Clock: bubble{}})
		feed(t, v, 1)
		s := inMemory(t, web.Options{View: v})
		var mu sync.Mutex
		seen := map[int]bool{}
		refused := 0
		for i := range 140 {
			if code := s.stream(t, func(web.Live) {
				mu.Lock()
				defer mu.Unlock()
				seen[i] = true
			}); code == 503 {
				refused++
			}
		}
		<-time.After(2 * time.Second)
		mu.Lock()
		if len(seen) != 128 || refused != 12 {
			t.Errorf("%d of 140 see calls, %d were refused", len(seen), refused)
		}
		mu.Unlock()
		for _, path := range []string{"/", "/live", "/api/v1/overview?range=15m", "/healthz"} {
			if got := s.ask("GET", path, ""); got.code != 200 {
				t.Errorf("%s meanwhile: %d", path, got.code)
			}
		}
	})
}

// bubble is the clock of a bubble.
type bubble struct{}

// Now implements clock.Clock.
func (bubble) Now() int64 { return time.Now().UnixNano() }

// TestLiveEvents: each slow call comes once, with the parts of its time.
func TestLiveEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := live.New(live.Options{Clock: bubble{}})
		s := inMemory(t, web.Options{View: v})
		var mu sync.Mutex
		var calls []web.SlowCall
		events := 0
		s.stream(t, func(e web.Live) {
			mu.Lock()
			defer mu.Unlock()
			events++
			calls = append(calls, e.Slow...)
		})
		<-time.After(1500 * time.Millisecond)
		feed(t, v, 3)
		<-time.After(3 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(calls) != 3 || events < 4 || events > 5 {
			t.Fatalf("%d calls in %d events: %+v", len(calls), events, calls)
		}
		c := calls[0]
		if c.Op != "GET" || c.Ns != 20e6 || c.Process != "shop[17]" || len(c.Segments) != 3 ||
			c.Segments[1].Name != "server throttled" || c.Segments[1].FromNs != 1e6 || c.Segments[1].ToNs != 19e6 {
			t.Errorf("%+v", c)
		}
		var slow web.SlowCalls
		s.document("/api/v1/slow?limit=2", web.SlowSchema, &slow)
		if len(slow.Calls) != 2 || slow.Calls[0].Number != 3 {
			t.Errorf("%+v", slow)
		}
	})
}
