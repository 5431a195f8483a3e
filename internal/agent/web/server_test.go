package web_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/door"
	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/web"
	"slowpath/internal/house/memnet"
	"slowpath/internal/live"
)

// token is one that is long enough.
const token = "c2xvd3BhdGggaXMgc2xvdw"

// healthy is an agent that watches one server.
func healthy() web.Health {
	return web.Health{
		Status: web.Ok, Since: time.Now().Add(-time.Hour),
		Targets: []web.Watched{{Target: "127.0.0.1:6379", State: web.StateWatched}},
	}
}

// complete fills in what a test does not care about.
func complete(t testing.TB, o web.Options) web.Options {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:7380"
	}
	if o.Store == nil {
		store, err := incidents.Open(foldertest.Open(t, t.TempDir()), incidents.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		o.Store = store
	}
	if o.View == nil {
		o.View = live.New(live.Options{})
	}
	if o.Health == nil {
		o.Health = healthy
	}
	if o.Temp == nil {
		o.Temp = foldertest.Open(t, t.TempDir())
	}
	o.Version = "test"
	return o
}

// site is a server that runs.
type site struct {
	testing.TB
	url     string
	client  *http.Client
	connect dialer
}

// start runs a server on a free port of loopback until the test ends.
func start(t testing.TB, o web.Options) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// Deadlines of memnet can pass late, and an HTTP server sets one between two requests. A socket's do not.
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := (&net.Dialer{}).DialContext
	at := startAt(t, o, l, dial, inside, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, "tcp", inside.Addr().String())
	})
	at.url = "http://" + l.Addr().String()
	if o.TLS != nil {
		at.url = strings.Replace(at.url, "http:", "https:", 1)
	}
	return at
}

// inMemory runs a server in a bubble until the test ends.
func inMemory(t testing.TB, o web.Options) *site {
	t.Helper()
	l, dial := memnet.Listen(t)
	inside, dialInside := memnet.Listen(t)
	at := startAt(t, o, l, dial, inside, dialInside)
	at.url = "http://127.0.0.1"
	return at
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// startAt runs a server behind its door: dial reaches the door, dialInside the server.
func startAt(t testing.TB, o web.Options, l net.Listener, dial dialer, inside net.Listener, dialInside dialer) *site {
	t.Helper()
	o = complete(t, o)
	s, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.Serve(ctx, inside) }()
	go func() {
		done <- door.Serve(ctx, l, door.Options{
			TLS: o.TLS, Dial: dialInside, Incidents: o.Store.Path(), Log: io.Discard,
		})
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	})
	at := &site{TB: t, connect: dial, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // our own certificate
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(at.client.CloseIdleConnections)
	return at
}

// dial is a connection to a site, until the test ends.
func (s *site) dial() net.Conn {
	s.Helper()
	c, err := s.connect(s.Context(), "tcp", "")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// answer is what a request got.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends a request with header lines "Name: value"; Host is one of them.
func (s *site) ask(method, path, body string, header ...string) answer {
	s.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	reply, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 64<<20))
	if err != nil {
		s.Fatal(err)
	}
	return answer{reply.StatusCode, reply.Header, string(text)}
}

// document reads a reply that must be of a schema.
func (s *site) document(path, schema string, into any) {
	s.Helper()
	got := s.ask("GET", path, "")
	var named struct{ Schema string }
	if err := json.Unmarshal([]byte(got.body), &named); err != nil || got.code != 200 || named.Schema != schema {
		s.Fatalf("%s: %d, schema %q, %v: %.300s", path, got.code, named.Schema, err, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		s.Fatal(err)
	}
}

// failure is the sentence of an error as JSON.
func (a answer) failure(t testing.TB) string {
	t.Helper()
	var e web.Error
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Schema != web.ErrorSchema {
		t.Errorf("%d is no error as JSON: %.200s", a.code, a.body)
	}
	return e.Error
}
