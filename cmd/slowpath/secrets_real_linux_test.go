package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	runtime "runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
)

// TestSecretsInRecordings: a recording of a real watch holds no argument, no name that a command was given to hide it,
// nothing that a process says in argv[0] or has in its environment, and no label of a profile.
func TestSecretsInRecordings(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.RedisCLI)
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("needs redis-cli")
	}
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{
		"rename-command KEYS hidden-command-b840f", "rename-command CONFIG HIDDENCONFIG5",
		"slowlog-log-slower-than 0", "slowlog-max-len 1000",
	}})
	app := labelled(t)
	path := filepath.Join(t.TempDir(), "x.slowpath")
	watch := exec.Command(slowpath, "record", s.Addr, "-o", path, "--slow", "1us", "--pprof", app, "--for", "4s")
	var out bytes.Buffer
	watch.Stdout, watch.Stderr = &out, &out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// A client that uses the CPU, whose title has a password as those of some programs do.
	client := exec.CommandContext(ctx, "bash", "-c", `exec -a 'hidden-title-7 --password=hidden-title-8' bash -c '
		exec 3<>/dev/tcp/127.0.0.1/'$0'
		while :; do
			printf "HIDDEN-COMMAND-B840F hidden-argument-1\r\nSET hidden-key-2 hidden-value-3\r\n" >&3
			printf "HIDDENCONFIG5 GET hidden-argument-4\r\nHIDDEN-TYPO-9 hidden-argument-5\r\n" >&3
			for i in 1 2 3 4; do read -r -t 1 line <&3; done
		done'`, strconv.Itoa(s.Port))
	// The tap knows commands that come as arrays.
	cli := exec.CommandContext(ctx, "redis-cli", "-p", strconv.Itoa(s.Port), "-r", "-1", "-i", "0.01",
		"hidden-command-b840f", "hidden-argument-1")
	for _, c := range []*exec.Cmd{client, cli} {
		c.Env = append(os.Environ(), "TOKEN=hidden-variable-10", "GODEBUG=hidden-variable-11", "GOMAXPROCS=2")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { cancel(); _ = c.Wait() }()
	}
	if err := watch.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording can be read by others: %v, %v", info.Mode(), err)
	}
	for _, p := range rec.Profiles {
		z, err := gzip.NewReader(bytes.NewReader(p.Pprof))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, body...)
	}
	text := strings.ToLower(string(raw))
	for rest := text; ; {
		i := strings.Index(rest, "hidden")
		if i < 0 {
			break
		}
		t.Errorf("the recording holds %q", rest[max(0, i-60):min(len(rest), i+60)])
		rest = rest[i+len("hidden"):]
		if t.Failed() && len(text)-len(rest) > 1<<20 {
			break
		}
	}
	slowlog := false
	for _, e := range rec.Events {
		slowlog = slowlog || e.Kind == recording.KindSlowlog && strings.Contains(e.Detail, recording.UnknownCommand)
	}
	if len(rec.Profiles) == 0 || !strings.Contains(text, "bash") || !slowlog {
		t.Errorf("%d profiles; renamed commands were seen: %v", len(rec.Profiles), slowlog)
	}
}

// labelled is an application whose goroutines have a label with a secret.
func labelled(t *testing.T) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	runtime.Do(t.Context(), runtime.Labels("token", "hidden-label-6"), func(ctx context.Context) {
		go func() {
			for ctx.Err() == nil {
				for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
				}
				await.Pass(20 * time.Millisecond)
			}
		}()
	})
	return s.Listener.Addr().String()
}
