package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// labOf runs slowpath with a registry of its own.
type labOf struct {
	*testing.T
	path, state string
}

func (l labOf) command(args ...string) *exec.Cmd {
	c := exec.Command(l.path, args...)
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+l.state)
	return c
}

// run fails on another exit code than the one that is wanted.
func (l labOf) run(code int, args ...string) (out, errOut string) {
	l.Helper()
	var stdout, stderr bytes.Buffer
	c := l.command(args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || c.ProcessState.ExitCode() != code {
		l.Fatalf("%q: %v, %s%s", args, err, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// upCluster is lab up, and gives the addresses of the masters.
func upCluster(t *testing.T, args ...string) (l labOf, masters []string) {
	t.Helper()
	l = labOf{t, program(t), t.TempDir()}
	out, _ := l.run(cli.ExitClean, append([]string{
		"lab", "up", "--name", "life", "--config", "cluster-node-timeout 5000",
	}, args...)...)
	t.Cleanup(func() { l.run(cli.ExitClean, "lab", "down", "life") })
	for _, m := range regexp.MustCompile(`(?m) master +(\S+)`).FindAllStringSubmatch(out, -1) {
		masters = append(masters, m[1])
	}
	return l, masters
}

// changes are the lines of topology watch --json.
type changes struct {
	mu   sync.Mutex
	list []map[string]string
}

func (w *changes) read(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var one map[string]string
		if json.Unmarshal(lines.Bytes(), &one) == nil {
			w.mu.Lock()
			w.list = append(w.list, one)
			w.mu.Unlock()
		}
	}
}

// await waits until a change of a kind is told that has an address in a field.
func (w *changes) await(t *testing.T, kind, field, addr string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); await.Pass(20 * time.Millisecond) {
		w.mu.Lock()
		found := slices.ContainsFunc(w.list, func(c map[string]string) bool {
			return c["kind"] == kind && c[field] == addr
		})
		w.mu.Unlock()
		if found {
			return
		}
	}
	t.Errorf("no %s %s %s in %v", kind, field, addr, w.list)
}

// begin starts a command that is ended by Ctrl-C.
func (l labOf) begin(out, errOut io.Writer, args ...string) *exec.Cmd {
	l.Helper()
	c := l.command(args...)
	c.Stdout, c.Stderr = out, errOut
	if err := c.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// awaitLine waits until a line begins with a text; further ones are read, too.
func awaitLine(t *testing.T, from io.Reader, begin string) {
	t.Helper()
	seen := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(from); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), begin) {
				close(seen)
			}
		}
	}()
	select {
	case <-seen:
	case <-time.After(time.Minute):
		t.Fatalf("no line %q within a minute", begin)
	}
}

func end(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// TestLabClusterRefuses: one line that ends in the fix, and the exit code of the command line.
func TestLabClusterRefuses(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	l, masters := upCluster(t, "--masters", "2")
	for _, test := range []struct {
		args, want string
	}{
		{"reshard --from 1 --to " + masters[0] + " --slots 3", `has no node "1"; give one of: `},
		{"reshard --from " + masters[0] + " --to " + masters[1], "reshard needs --from NODE, --to NODE and --slots N"},
		{"reshard --from x --to y --slots 1 --keys-at-once -1", "cannot be negative"},
		{"failover " + masters[0], "add-node --name life --replica-of"},
		{"failover " + masters[0] + " --kill --force", "give one of them"},
		{"add-node --replica-of " + masters[0] + " --slots 5", "leave out one of them"},
		{"add-node --port " + portOf(masters[0]), "give another first port, or none"},
		{"del-node nosuch", "give one of: "},
	} {
		args := append([]string{"lab", "cluster"}, strings.Fields(test.args)...)
		out, errOut := l.run(cli.ExitUsage, append(args, "--name", "life")...)
		line := strings.TrimPrefix(errOut, "starting a server\n")
		if out != "" || strings.Count(line, "\n") != 1 || !strings.Contains(line, test.want) {
			t.Errorf("%s: %s%s", test.args, out, errOut)
		}
	}
	_, errOut := l.run(cli.ExitUsage, "lab", "cluster", "del-node", "1", "--name", "other")
	if want := `no cluster of lab up by the name "other"; there is: --name life`; !strings.Contains(errOut, want) {
		t.Error(errOut)
	}
}

// TestLabClusterInterrupted: Ctrl-C ends a move after a slot, and says the command for the rest, which works.
func TestLabClusterInterrupted(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	l, masters := upCluster(t, "--masters", "2")
	l.run(cli.ExitClean, "bench", masters[0], "-c", "--prefill", "--keys", "2000", "--requests", "1", "--keep")
	var out, errOut bytes.Buffer
	c := l.command("lab", "cluster", "reshard", "--name", "life", "--from", masters[0], "--to", masters[1], "--slots",
		"300", "--pause", "1h")
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	for end := time.Now().Add(time.Minute); ; await.Pass(20 * time.Millisecond) { // until a slot is open
		nodes, err := exec.Command("redis-cli", "-p", portOf(masters[0]), "cluster", "nodes").Output()
		if err == nil && bytes.Contains(nodes, []byte("->-")) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v: %s", err, nodes)
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	_, rest, found := strings.Cut(errOut.String(), "for the rest: slowpath ")
	if c.ProcessState.ExitCode() != cli.ExitInterrupted || !found || !strings.Contains(out.String(), " of 300 slots") {
		t.Fatalf("exit code %d: %s%s", c.ProcessState.ExitCode(), out.String(), errOut.String())
	}
	if said, _ := l.run(cli.ExitClean, strings.Fields(rest)...); !strings.Contains(said, "moved ") {
		t.Errorf("%s", said)
	}
}
