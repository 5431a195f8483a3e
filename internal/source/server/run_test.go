package server_test

import (
	"cmp"
	"context"
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
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// TestMain lets one run of these tests at a time use the ports of this package.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-test.fuzzworker") { // it would wait for its own parent, which has the lock
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "slowpath-server-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	os.Exit(m.Run())
}

// binaries are the servers that the lab's cache has; at least the installed one.
func binaries(t testing.TB) []servers.Binary {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no cache directory: ", err)
	}
	cache, err := servers.OpenCache(filepath.Join(dir, "slowpath", "servers"))
	if err != nil {
		t.Skip("no cache of servers: ", err)
	}
	found := cache.Installed(t.Context())
	if len(found) == 0 {
		t.Skip("no server in the cache: run `slowpath lab servers`")
	}
	return found
}

// eachServer runs a test against every version.
func eachServer(t *testing.T, test func(t *testing.T, r *running)) {
	for _, b := range binaries(t) {
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
	t.Skip("redis 7.0.15 is not in the cache")
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
	until(r.t, "the server listens", func() bool {
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

func (r *running) freeze() { r.cmd.Process.Signal(syscall.SIGSTOP) }
func (r *running) thaw()   { r.cmd.Process.Signal(syscall.SIGCONT) }

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

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("waited too long until ", what)
}

// locked is a recording in memory for several goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Call(c, s...)
}

func (l *locked) Histogram(h recording.Histogram) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Histogram(h)
}

func (l *locked) Sample(s recording.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Sample(s)
}

func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.ConnUse(client, u)
}

func (l *locked) Event(e recording.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Event(e)
}

func (l *locked) Snapshot(s recording.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Snapshot(s)
}

func (l *locked) SetMeta(k, v string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.SetMeta(k, v)
}

// watched is a watch in progress.
type watched struct {
	t      testing.TB
	sink   *locked
	node   string
	cancel context.CancelFunc
	done   chan error
	clock  *clock.Real
}

const node = "node"

func watch(t testing.TB, to target.Target, change ...func(*server.Options)) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watched{
		t: t, sink: &locked{rec: recording.New()}, node: node, cancel: cancel, done: make(chan error, 1),
		clock: clock.New(),
	}
	o := server.Options{Target: to, Node: node, Clock: w.clock, Sink: w.sink, Every: 50 * time.Millisecond, Budget: 1}
	for _, c := range change {
		c(&o)
	}
	go func() { w.done <- server.Watch(ctx, o) }()
	t.Cleanup(cancel)
	return w
}

// polls counts the answered polls so far.
func (w *watched) polls() int {
	w.sink.mu.Lock()
	defer w.sink.mu.Unlock()
	n, _ := w.sink.rec.Series(recording.SourceServer, node, "self.polls").Last()
	return int(n)
}

// more waits for so many more polls.
func (w *watched) more(n int) {
	w.t.Helper()
	want := w.polls() + n
	until(w.t, "more polls", func() bool { return w.polls() >= want })
}

// event waits for an event of a kind.
func (w *watched) event(kind string) recording.Event {
	w.t.Helper()
	var found recording.Event
	until(w.t, "an event "+kind, func() bool {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		for _, e := range w.sink.rec.Events {
			if e.Kind == kind {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// end ends the watch and gives what it saw.
func (w *watched) end() *recording.Recording {
	w.t.Helper()
	w.cancel()
	if err := <-w.done; err != nil {
		w.t.Fatal(err)
	}
	w.sink.rec.Index()
	return w.sink.rec
}
