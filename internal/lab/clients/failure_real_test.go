package clients

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients/programs/protocol"
)

// wantProfile reads the mutex profile of a service in Go.
func wantProfile(t *testing.T, addr string) {
	t.Helper()
	answer, err := http.Get("http://" + addr + "/debug/pprof/mutex?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "--- mutex:") {
		t.Errorf("mutex profile: %v: %.200s", err, text)
	}
}

// TestBadInput: programs refuse a line that is not options, with an error of one line.
func TestBadInput(t *testing.T) {
	needs.Real(t)
	for _, name := range onePerLanguage() {
		t.Run(string(name), func(t *testing.T) {
			p := program(t, name)
			for _, line := range []string{
				"", "nonsense\n", "{}\n",
				`{"schema":"slowpath.client/v0","addresses":["a:1"],"commands":[{"args":["PING"]}]}` + "\n",
			} {
				cmd := exec.CommandContext(t.Context(), p.Argv[0], p.Argv[1:]...)
				cmd.Stdin = strings.NewReader(line)
				cmd.Dir = t.TempDir()
				out, err := cmd.CombinedOutput()
				if text := strings.TrimSpace(string(out)); err == nil || !strings.Contains(text, "options") ||
					strings.Contains(text, "\n") {
					t.Errorf("%q: %v: %s", line, err, out)
				}
			}
		})
	}
}

// TestUnreachable: without a server the errors are of kind connection, or the program says at its start that it cannot
// connect.
func TestUnreachable(t *testing.T) {
	needs.Real(t)
	for _, c := range tested() {
		if c.Name == Lettuce6 {
			continue // is the program of Lettuce7
		}
		t.Run(string(c.Name), func(t *testing.T) {
			o := Options{
				Addresses: []string{"127.0.0.1:1"}, Workers: 1, Rate: 20, Retries: -1, Duration: 300 *
					time.Millisecond,
				DialTimeout: 200 * time.Millisecond, Commands: []Command{{Args: []string{"GET", "k"}}},
			}
			sum, err := program(t, c.Name).Run(t.Context(), t.TempDir(), o)
			if errors.Is(err, ErrConnect) {
				return
			}
			if err != nil || sum.Calls != sum.Errors || sum.ErrorKinds[protocol.KindConnection] != sum.Errors {
				t.Errorf("%v, %v, kinds %v", err, sum, sum.ErrorKinds)
			}
		})
	}
}

// TestKilledClient: the error says how it ended, and its pid is not used any more.
func TestKilledClient(t *testing.T) {
	needs.Real(t)
	run := start(t, GoRedis9, Options{
		Addresses: []string{"127.0.0.1:1"}, Workers: 1, Rate: 10,
		Commands: []Command{{Args: []string{"PING"}}},
	})
	run.Kill()
	if _, err := run.Stop(time.Second); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	run.Kill()
	if err := run.AwaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "before its first call") {
		t.Error(err)
	}
}

// script is a program of the user: a shell script that reads its options and then runs text.
func script(t *testing.T, text string) Program {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nread line\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := c.Get(t.Context(), Name(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plain is options for scripts, which ignore them.
var plain = Options{
	Addresses: []string{"127.0.0.1:1"}, Workers: 1, Commands: []Command{{Args: []string{"PING"}}},
	Duration: time.Millisecond,
}

const nothing = `{"schema":"slowpath.client/v1","library":"none","calls":0,"errors":0,"start_unix_ns":0,` +
	`"ran_ns":0,"per_second":[],"histogram":[],"max_ns":0,"cpu_ns":0,"dials":0,"pool":{"connections":0,"idle":0}}`

func TestUserPrograms(t *testing.T) {
	needs.Real(t)
	for name, test := range map[string]struct {
		text, says string
		is         error
	}{
		"one that works":       {"echo ready >&2; cat >/dev/null; echo '" + nothing + "'", "", nil},
		"ready twice":          {"echo ready >&2; echo ready >&2; echo '" + nothing + "'", "", nil},
		"a missing library":    {"echo no such library >&2; exit 1", "no such library", nil},
		"an unsupported mode":  {"echo no ring >&2; exit 3", "no ring", ErrUnsupported},
		"no server":            {"echo refused >&2; exit 4", "refused", ErrConnect},
		"silence":              {"cat >/dev/null", "printed nothing", protocol.ErrSummary},
		"something else":       {"echo 12 calls", "invalid character", protocol.ErrSummary},
		"too much":             {"yes | head -c 20000000", "", errAny},
		"many words on stderr": {"yes some complaint | head -c 200000 >&2; exit 1", "some complaint", nil},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := script(t, test.text).Start(t.TempDir(), plain)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Kill()
			sum, err := run.Stop(endTimeout)
			switch {
			case test.says == "" && test.is == nil && (err != nil || sum.Library != "none"):
				t.Errorf("%v, %v", err, sum)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)),
				test.is == errAny && err == nil, test.is != nil && test.is != errAny && !errors.Is(err, test.is):
				t.Errorf("%v, want %q", err, test.says)
			}
			if err != nil && len(err.Error()) > 2*stderrLimit {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

func TestStartRefuses(t *testing.T) {
	needs.Real(t)
	p := script(t, "true")
	if _, err := p.Start(t.TempDir(), Options{}); !errors.Is(err, protocol.ErrOptions) {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), t.TempDir(), Options{}); !errors.Is(err, ErrDuration) {
		t.Error(err)
	}
	if _, err := (Program{Name: "x", Argv: []string{"/nonexistent"}}).Start(t.TempDir(), plain); !errors.Is(err,
		os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := (Requests{}).Make(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("a load without connections")
	}
}

// TestServiceWithErrors: responses other than 200 are errors of kind HTTP.
func TestServiceWithErrors(t *testing.T) {
	needs.Real(t)
	service, err := program(t, Redigo).Serve(t.Context(), t.TempDir(), Options{
		Addresses: []string{"127.0.0.1:1"},
		Commands:  []Command{{Args: []string{"GET", "k"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Kill()
	sum, err := Requests{Connections: 2, Duration: 300 * time.Millisecond}.Make(t.Context(), service.Addr())
	if err != nil || sum.Calls == 0 || sum.ErrorKinds["HTTP"] != sum.Calls || !strings.Contains(sum.LastError, "502") {
		t.Errorf("%v, %v, kinds %v", err, sum, sum.ErrorKinds)
	}
}
