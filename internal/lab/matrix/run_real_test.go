//go:build linux

package matrix

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// options are those of a run with real servers and clients. The test is skipped where they cannot be had.
func options(t *testing.T, p Plan) Options {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	_, err = cache.Get(t.Context(), servers.Redis7015, t.Output())
	for _, name := range p.Clients {
		if err == nil && !strings.Contains(name, "/") {
			_, err = programs.Get(t.Context(), clients.Name(name), t.Output())
		}
	}
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := r.Entries(); err != nil || len(left) > 0 {
			t.Errorf("left in the registry: %+v (%v)", left, err)
		}
	})
	f, err := fleet.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Plan: p, Fleet: f, Servers: cache, Clients: programs, Log: t.Output(), Doctor: sees("healthy"),
		Done: func(text string) { t.Log(text) },
	}
}

// sees is a doctor of whom only the answer matters here; the real one is asked by the scripts of the command.
func sees(said string, causes ...string) Doctor {
	return func(context.Context, []string) (verdict.Diagnosis, error) {
		d := verdict.Diagnosis{Verdict: said}
		for _, c := range causes {
			d.Findings = append(d.Findings, cause.Finding{Cause: c, Confidence: 0.9})
		}
		return d, nil
	}
}

// short is long enough for a client to start; nothing is said of its figures.
func short() Settings {
	s := Quick()
	s.Workers, s.Warmup, s.Duration, s.Watch = 4, 100*time.Millisecond, 400*time.Millisecond, time.Second
	return s
}

func fresh(s Settings) *Matrix { return &Matrix{Schema: Schema, Settings: s, Cells: []Cell{}} }

// idle is a client none of whose calls succeeds: a shell script.
func idle(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idle")
	script := `#!/bin/sh
read line
echo ready >&2
echo '{"schema":"slowpath.client/v1","library":"none","calls":0,"errors":0,"start_unix_ns":0,"ran_ns":0,` +
		`"per_second":[],"histogram":[],"max_ns":0,"cpu_ns":0,"dials":0,"pool":{"connections":0,"idle":0}}'
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRun measures a real client, and has the reason where one cannot be: a library without clusters, a client without
// a successful call, a program that is not there. A second run has nothing to do but for the last.
func TestRun(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	p := Plan{
		Clients: []string{"go-redis-v9", "redigo", idle(t), "./nosuch"}, Servers: []string{"redis-7.0.15"},
		Topologies: []string{Standalone, Cluster},
	}
	o := options(t, p)
	var asked [][]string
	o.Doctor = func(ctx context.Context, args []string) (verdict.Diagnosis, error) {
		asked = append(asked, args)
		return sees(verdict.Findings, "slow-command", "fork-latency")(ctx, args)
	}
	m := fresh(short())
	if err := Run(t.Context(), o, m); err != nil {
		t.Fatal(err)
	}
	if len(m.Cells) != 8 {
		t.Fatalf("%d cells", len(m.Cells))
	}
	reasons := []string{"", "", "no call succeeded", "nosuch", "", "has [standalone]", "no call succeeded", "nosuch"}
	for i, c := range m.Cells {
		if want := reasons[i]; want != "" {
			if !strings.Contains(c.Empty, want) || c.Finding != "" || c.RequestsPerSecond != 0 ||
				c.Again != (want == "nosuch") {
				t.Errorf("%s: %+v", c, c)
			}
			continue
		}
		if c.Empty != "" || c.Errors > 0 || c.Calls == 0 || c.RequestsPerSecond <= 0 || c.P50Ns <= 0 || c.MeanNs <= 0 ||
			c.P99Ns < c.P50Ns || c.LimitedBy == "" || c.Library == "" {
			t.Errorf("%s: %+v", c, c)
		}
		if c.Finding != "slow-command" || !slices.Equal(c.Others, []string{"fork-latency"}) || c.Confidence != 0.9 {
			t.Errorf("%s: finding %q, %q", c, c.Finding, c.Others)
		}
	}
	for _, args := range asked {
		if !slices.Contains(args, "--pprof") {
			t.Errorf("doctor is not told of the profiles: %q", args)
		}
	}
	if again := p.Todo(m); len(again) != 2 || again[0].Client != "./nosuch" {
		t.Errorf("to be measured again: %v", again)
	}
}

// TestDoctorWatchesCallersThatPause: a pair that doctor watches makes half of the calls that it can.
func TestDoctorWatchesCallersThatPause(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, throughHTTP := range []bool{false, true} {
		o := options(t, Plan{
			Clients: []string{"go-redis-v9"}, Servers: []string{"redis-7.0.15"}, Topologies: []string{Standalone},
		})
		s := short()
		s.HTTP = throughHTTP
		var calls, seconds float64
		o.Doctor = func(ctx context.Context, args []string) (verdict.Diagnosis, error) {
			begin, start := commands(t, args[0]), time.Now()
			await.Pass(s.Watch) // as long as doctor watches
			calls, seconds = commands(t, args[0])-begin, time.Since(start).Seconds()
			return sees("healthy")(ctx, args)
		}
		var m *Matrix
		await.Until(t, "calls that end while they are measured, on a host that may be busy", func() bool {
			m = fresh(s)
			if err := Run(t.Context(), o, m); err != nil {
				t.Fatal(err)
			}
			return m.Cells[0].Empty == ""
		})
		// A caller that is late does not catch up: there are never more, but one of each caller at the begin.
		most := max(m.Cells[0].RequestsPerSecond/2, float64(s.Workers))*seconds + 4*float64(s.Workers)
		if calls == 0 || calls > most {
			t.Errorf("http %v: %.0f calls in %.1f s; at most %.0f: %+v", throughHTTP, calls, seconds, most, m.Cells[0])
		}
	}
}

// commands is how many a server has processed.
func commands(t *testing.T, addr string) float64 {
	t.Helper()
	at, err := target.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := session.Open(t.Context(), at, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := s.Do(t.Context(), "INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	return server.ParseInfo(string(v.Str)).Numbers["total_commands_processed"]
}

// TestRunThroughHTTP loads the client's service.
func TestRunThroughHTTP(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, Plan{
		Clients: []string{"go-redis-v9"}, Servers: []string{"redis-7.0.15"},
		Topologies: []string{Standalone},
	})
	s := short()
	s.HTTP = true
	m := fresh(s)
	if err := Run(t.Context(), o, m); err != nil {
		t.Fatal(err)
	}
	if c := m.Cells[0]; !c.Measured() || c.Errors > 0 || c.Calls == 0 || c.LimitedBy == "" || c.Finding != "healthy" ||
		c.Unwatched != "" || !strings.Contains(c.Library, "go-redis") {
		t.Errorf("%+v", c)
	}
}

// TestRunIsResumed: a run that ends early keeps the cells that it has, and the next does the rest.
func TestRunIsResumed(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, Plan{
		Clients: []string{"go-redis-v9", "redigo"}, Servers: []string{"redis-7.0.15"},
		Topologies: []string{Standalone},
	})
	s := short()
	s.Watch = 0
	path := filepath.Join(t.TempDir(), "m.json")
	m := fresh(s)
	ctx, stop := context.WithCancel(t.Context())
	o.Keep, o.Done = path, func(string) { stop() }
	if err := Run(ctx, o, m); !errors.Is(err, context.Canceled) || len(m.Cells) != 1 {
		t.Fatalf("%v: %+v", err, m.Cells)
	}
	m, err := Resume(path, fresh(s))
	if err != nil {
		t.Fatal(err)
	}
	first := m.Cells[0]
	var done []string
	o.Keep, o.Done = "", func(text string) { done = append(done, text) }
	if err := Run(t.Context(), o, m); err != nil {
		t.Fatal(err)
	}
	if len(done) != 1 || !strings.HasPrefix(done[0], "[1/1] redigo on ") || len(m.Cells) != 2 ||
		m.Cells[0].Calls != first.Calls || m.Cells[1].Finding != "" {
		t.Errorf("done %v: %+v", done, m.Cells)
	}
}

// TestDoctorWithoutAnswer leaves the figures.
func TestDoctorWithoutAnswer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, Plan{
		Clients: []string{"go-redis-v9"}, Servers: []string{"redis-7.0.15"},
		Topologies: []string{Standalone},
	})
	o.Doctor = func(context.Context, []string) (verdict.Diagnosis, error) {
		return verdict.Diagnosis{}, errors.New("no way in")
	}
	m := fresh(short())
	if err := Run(t.Context(), o, m); err != nil {
		t.Fatal(err)
	}
	if c := m.Cells[0]; !c.Measured() || c.RequestsPerSecond <= 0 || c.Finding != "" || c.Unwatched != "no way in" {
		t.Errorf("%+v", c)
	}
}
