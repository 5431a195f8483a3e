package server_test

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// lockPorts lets one run of these tests at a time use the ports of this package.
var lockPorts = sync.OnceFunc(func() {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "slowpath-server-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX) // until this process ends
	}
})

// binaries are the servers that the lab's cache has; at least the one that is installed.
func binaries(t testing.TB) []servers.Binary {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Get(t.Context(), servers.Redis7015, t.Output()); err != nil {
		t.Fatal(err)
	}
	return cache.Installed(t.Context())
}

// versions are the oldest server, the usual one and the newest; in make test-long all.
func versions(t testing.TB) []servers.Binary {
	all := binaries(t)
	if needs.InLong() {
		return all
	}
	return slices.DeleteFunc(all, func(b servers.Binary) bool {
		return b.Name != servers.Redis506 && b.Name != servers.Redis7015 && b.Name != servers.Valkey811
	})
}

// eachServer runs a test against these versions.
func eachServer(t *testing.T, test func(t *testing.T, r *running)) {
	for _, b := range versions(t) {
		t.Run(string(b.Name), func(t *testing.T) {
			t.Parallel()
			test(t, start(t, b))
		})
	}
}

// redis70 is the version for what does not differ between versions.
func redis70(t testing.TB) servers.Binary {
	for _, b := range binaries(t) {
		if b.Name == servers.Redis7015 {
			return b
		}
	}
	t.Fatal("redis 7.0.15 is not in the cache")
	return servers.Binary{}
}

// running is a server in a directory of its own.
type running struct {
	t      testing.TB
	binary servers.Binary
	port   int
	dir    string
	args   []string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
}

var nextPort atomic.Int32

// freePort finds a port in the range of this package's tests. None comes twice in a run: between two servers of a test
// it is free for a moment.
func freePort(t testing.TB) int {
	const ports = 1000
	for range ports {
		port := 13000 + int(nextPort.Add(1)+int32(os.Getpid()))%ports
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port in 13000-13999")
	return 0
}

// start starts a server on a port that no other process took meanwhile.
func start(t testing.TB, b servers.Binary, args ...string) *running {
	t.Helper()
	lockPorts()
	r := &running{t: t, binary: b, dir: t.TempDir(), args: args}
	var said string
	for range 3 {
		r.port = freePort(t)
		if said = r.begin(); said == "" {
			t.Cleanup(func() {
				r.stop()
				if t.Failed() {
					t.Logf("the server ended with %v; it printed: %s", r.cmd.ProcessState, r.printed())
				}
			})
			return r
		}
	}
	t.Fatal("the server does not start: ", said)
	return nil
}

// start starts it again.
func (r *running) start() {
	r.t.Helper()
	if said := r.begin(); said != "" {
		r.t.Fatal("the server does not start: ", said)
	}
}

// begin starts the process and waits until it listens. Where it ends before, begin returns what it printed.
func (r *running) begin() (said string) {
	r.t.Helper()
	args := append([]string{
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir, "--save", "",
		"--daemonize", "no",
	}, r.args...)
	f, err := os.Create(r.log())
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	r.cmd = r.binary.Command(args...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r.cmd.Stdout, r.cmd.Stderr = f, f
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(r.cmd, r.ended)
	await.Until(r.t, "the server listens", func() bool {
		select {
		case <-r.ended:
			said = cmp.Or(r.printed(), "nothing was printed")
			return true
		default:
		}
		if !strings.Contains(r.printed(), "Server initialized") {
			return false
		}
		c, err := net.Dial("tcp", r.addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return said
}

func (r *running) log() string { return filepath.Join(r.dir, "log") }

func (r *running) printed() string {
	text, err := os.ReadFile(r.log())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// stop ends this process and waits for it.
func (r *running) stop() {
	r.cmd.Process.Kill()
	<-r.ended
}

func (r *running) addr() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

func (r *running) target() target.Target {
	t, err := target.Parse(r.addr())
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// client is a user of the server: it may send anything.
type client struct {
	t testing.TB
	c net.Conn
	r *resp.Reader
}

func (r *running) client() *client {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return &client{r.t, c, resp.NewReader(c, resp.Limits{})}
}

func (c *client) do(args ...string) resp.Value {
	c.t.Helper()
	if _, err := c.c.Write(resp.AppendCommand(nil, args...)); err != nil {
		c.t.Fatal(args, err)
	}
	v, err := c.r.Read()
	if err != nil {
		c.t.Fatal(args, err)
	}
	return v
}

// fill makes n keys.
func (c *client) fill(n int) {
	c.t.Helper()
	c.do("EVAL", "for i=1,"+strconv.Itoa(n)+" do redis.call('SET','key:'..i,i) end", "0")
}
