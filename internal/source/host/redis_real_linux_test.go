package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/await"

	"golang.org/x/sys/unix"
)

// lockHost lets one run of these tests at a time use the ports and cgroups of this host.
var lockHost = sync.OnceFunc(func() {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "slowpath-host-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX) // until this process ends
	}
})

// start starts a program and ends it with the test.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	lockHost()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// startRedis starts a server and waits until it answers.
func startRedis(t *testing.T, port int, args ...string) *exec.Cmd {
	t.Helper()
	lockHost()
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Fatalf("another program listens at port %d", port)
	}
	cmd := start(t, "redis-server", append([]string{
		"--port", strconv.Itoa(port), "--save", "", "--logfile",
		"/dev/null",
	}, args...)...)
	await.Until(t, "redis answers", func() bool { // so that it has accepted the connection
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, err = c.Write([]byte("PING\r\n"))
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err == nil
	})
	return cmd
}

// makeCgroup makes a v1 cgroup that is removed after the processes of the test have ended. Call it before start.
func makeCgroup(t *testing.T, controller, name string) string {
	t.Helper()
	lockHost()
	dir := filepath.Join("/sys/fs/cgroup", controller, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		t.Skipf("needs a writable cgroup v1 %s controller: %v", controller, err)
	}
	t.Cleanup(func() {
		await.Until(t, dir+" is removed", func() bool { return os.Remove(dir) == nil })
	})
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// watchFor watches a process while do runs.
func watchFor(t *testing.T, pid, port int, do func(*memory)) *memory {
	t.Helper()
	p, err := Locate(nil, Query{Listen: fmt.Sprintf("127.0.0.1:%d", port), WantPID: pid})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != pid || p.Foreign {
		t.Fatalf("located %+v, want PID %d", p, pid)
	}
	sink := &memory{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, Options{Sink: sink, Node: node, Process: p}) }()
	await.Until(t, "the watch has begun", func() bool { _, ok := sink.value(node, "main.delay_ns"); return ok })
	do(sink)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return sink
}

func show(t *testing.T, sink *memory) {
	t.Helper()
	for _, kind := range []string{"throttled", "run-queue", "frozen", "blocked", "busy"} {
		list := sink.kind(kind)
		t.Logf("%s: %d spans, %v", kind, len(list), time.Duration(sink.total(kind)))
		for i, e := range list {
			if i < 6 {
				t.Logf("   %d +%v %s", e.TimeNs/1e6%1e5, time.Duration(e.DurationNs), e.Detail)
			}
		}
	}
}

// endLoad ends a load of a server, and waits until the server has nothing to do: all of its waits are counted then.
func endLoad(t *testing.T, load, server *exec.Cmd) {
	t.Helper()
	_ = load.Process.Kill()
	_ = load.Wait() // it was killed
	await.Until(t, "the server sleeps", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		stat, ok := parseStat(b)
		return ok && stat.state == 'S'
	})
}

func sh(t *testing.T, format string, args ...any) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", fmt.Sprintf(format, args...)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, strings.TrimSpace(string(out)))
	}
}
