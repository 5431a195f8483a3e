package clients

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// serve starts a real server that ends with the test.
func serve(t *testing.T) *fleet.Instance {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), servers.Redis7015, t.Output())
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
	f, err := fleet.New(r)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Start(t.Context(), bin, fleet.Spec{Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start builds a program in the user's cache, as the lab does, and starts it.
func start(t *testing.T, name Name, o Options, lead ...string) *Process {
	t.Helper()
	c, err := OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Get(t.Context(), name, t.Output())
	if errors.Is(err, ErrTool) || errors.Is(err, ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.Start(t.TempDir(), o, lead...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = run.Stop(10 * time.Second) }) // stopped by the test already
	return run
}

func TestProgramsCallAndSumUp(t *testing.T) {
	s := serve(t)
	o := Options{Address: s.Addr, Password: "secret", Name: "lab", DB: 1, Workers: 2, Rate: 200, Keys: 10, PoolSize: 4, MaxIdle: 4,
		Commands: []Command{{Args: []string{"SET", "k{n}", "[1,2]"}}, {Args: []string{"GET", "k{n}"}, Weight: 3}}}
	for _, name := range Known() {
		t.Run(string(name), func(t *testing.T) {
			run := start(t, name, o)
			if err := run.AwaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := s.Do(t.Context(), "CLIENT", "LIST")
			if text, _ := list.(string); err != nil || !strings.Contains(text, " name=lab ") || !strings.Contains(text, " db=1 ") {
				t.Errorf("CLIENT LIST does not show it (%v):\n%v", err, list)
			}
			sum, err := run.Stop(10 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Calls == 0 || sum.Errors != 0 || sum.P50 <= 0 || sum.P50 > sum.P99 || sum.P99 > sum.Max || sum.Ran <= 0 || sum.CPU <= 0 {
				t.Errorf("summary: %+v", sum)
			}
			if name != PyAsync && sum.Dials == 0 {
				t.Errorf("no dials in %v", sum)
			}
		})
	}
}

// TestProgramsEndWithTheLab: the end of a killed lab closes the programs' standard input.
func TestProgramsEndWithTheLab(t *testing.T) {
	s := serve(t)
	for _, name := range Known() {
		t.Run(string(name), func(t *testing.T) {
			run := start(t, name, Options{Address: s.Addr, Password: "secret", Workers: 1, Commands: []Command{{Args: []string{"PING"}}}})
			if err := run.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-run.Exited():
			case <-time.After(20 * time.Second):
				t.Errorf("process %d is still there", run.PID)
			}
		})
	}
}

func TestStartSaysWhatTheProgramSaid(t *testing.T) {
	run, err := Program{Name: "broken", Argv: []string{"sh", "-c", "read line; echo no such library >&2; exit 3"}}.Start(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.AwaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "no such library") {
		t.Error(err)
	}
	if _, err := run.Stop(time.Second); err == nil {
		t.Error("no error")
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), GoRedis9, nil); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "https://go.dev/dl/") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := c.Get(t.Context(), "nodejs", nil); err == nil || !strings.Contains(err.Error(), "goredis9") {
		t.Error(err)
	}
}

func TestPythonWithoutTheLibrary(t *testing.T) {
	_, err := findPython(t.Context(), "no-such-python", "sh") // a shell has no redis.asyncio either
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "apt-get install python3-redis") {
		t.Error(err)
	}
}

func TestSourceHash(t *testing.T) {
	a := source{"main.go": []byte("package main"), "go.mod": []byte("module lab")}
	if a.hash() != (source{"go.mod": []byte("module lab"), "main.go": []byte("package main")}).hash() {
		t.Error("the order of the files matters")
	}
	for _, b := range []source{{"main.go": []byte("package main")}, {"main.go": []byte("package mai"), "go.mod": []byte("module lab")},
		{"main2.go": []byte("package main"), "go.mod": []byte("module lab")}} {
		if a.hash() == b.hash() {
			t.Errorf("%v has the hash of another source", b)
		}
	}
	for _, name := range []Name{GoRedis9, Redigo} {
		if s, err := goSource(name); err != nil || len(s["go.mod"]) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
