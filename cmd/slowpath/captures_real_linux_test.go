package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
)

// TestTcpdump: what tcpdump writes on this host, of a real server that is stopped now and then, as with incident 004:
// the request, an acknowledgement without data by the server's kernel, and the reply when the process runs again. The
// connection was there before the capture.
func TestTcpdump(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	if _, err := exec.LookPath("tcpdump"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and tcpdump: apt-get install tcpdump")
	}
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	replies := resp.NewReader(conn, resp.Limits{})
	callFor := func(key string) {
		if _, err := fmt.Fprintf(conn, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key); err != nil {
			t.Fatal(err)
		}
		if _, err := replies.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	call := func() { callFor("key") }
	call()
	path := filepath.Join(t.TempDir(), "lo.pcap")
	_, port, _ := net.SplitHostPort(s.Addr)
	stop := tcpdump(t, path, port)
	const stops = 5
	for range stops {
		for range 5 {
			call()
		}
		if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		wake := time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(s.PID, syscall.SIGCONT) })
		defer wake.Stop()
		call()
	}
	const last = "the last one"
	callFor(last)
	eventuallyHas(t, path, last) // tcpdump may be late
	stop()
	d := diagnosisOf(t, path)
	if d.Verdict != verdict.Inconclusive || len(d.Findings) > 0 || d.Latency.Calls < 6*stops ||
		d.Latency.SlowCalls < stops {
		t.Errorf("%s, %d calls", d.Summary, d.Latency.Calls)
	}
	for _, want := range []string{"passed at the server", "a delayed ACK", "its process did not answer"} {
		if !strings.Contains(d.Summary, want) {
			t.Errorf("%q does not say %q", d.Summary, want)
		}
	}
	if len(d.Worst) == 0 || d.Worst[0].Source != recording.SourceCapture || d.Worst[0].Ns < int64(90e6) {
		t.Errorf("worst calls: %+v", d.Worst)
	}
}

// eventuallyHas waits until a file has a text.
func eventuallyHas(t *testing.T, path, text string) {
	t.Helper()
	for end := time.Now().Add(patience); ; await.Pass(10 * time.Millisecond) {
		if body, err := os.ReadFile(path); err == nil && bytes.Contains(body, []byte(text)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never had %q", path, text)
		}
	}
}

// tcpdump captures packets of a port until the function that it gives is called.
func tcpdump(t *testing.T, path, port string) (stop func()) {
	t.Helper()
	// Whole packets of loopback take so much of the default buffer that it has room for few: a tcpdump that has no CPU
	// for a while loses some.
	cmd := exec.Command("tcpdump", "-i", "lo", "-U", "--immediate-mode", "-s", "300", "-B", "8192", "-w", path,
		"tcp port "+port)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := "" // "listening on lo": it captures from then on; it may be written in parts
	for buf := make([]byte, 4096); !strings.Contains(said, "listening on"); {
		n, err := stderr.Read(buf)
		said += string(buf[:n])
		if err != nil {
			t.Skipf("tcpdump cannot capture here: %s", said)
		}
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}
}

// TestCaptureAtBothEnds: slowpath's own captures on two hosts, ended by Ctrl-C, give together which calls were slow on
// the way and which at the server.
func TestCaptureAtBothEnds(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	h := newHosts(t)
	dir := t.TempDir()
	program := built(t, dir)
	h.calls(t, "SET big "+strings.Repeat("v", 60_000))
	of := func(ns, name, on string) *captureRun {
		return startCapture(t, exec.Command("ip", "netns", "exec", ns, program, "capture", h.address.String(), "-i", on,
			"-o", filepath.Join(dir, name+".pcapng")))
	}
	ends := map[string]*captureRun{"client": of(h.client, "client", h.device), "server": of(h.server, "server", "any")}
	script := []string{"PING"}
	for range 5 {
		script = append(script, "GET big", "DEBUG SLEEP 0.1", "PING")
	}
	h.calls(t, script...)
	for name, c := range ends {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
		_, effective, _ := strings.Cut(string(status), "CapEff:")
		mask, bad := strconv.ParseUint(strings.Fields(effective)[0], 16, 64)
		if most := uint64(1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH); err != nil ||
			bad != nil || mask&^most != 0 {
			t.Errorf("the %s's has the capabilities %x (%v, %v)", name, mask, err, bad)
		}
	}
	var files []string
	for name, c := range ends {
		file := filepath.Join(dir, name+"-00001.pcapng")
		said := c.end(t)
		if !strings.HasSuffix(said, "for the verdict: slowpath doctor "+file+"\n") ||
			!strings.Contains(said, "they hold what is sent, passwords too") {
			t.Errorf("capture said: %s", said)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		files = append(files, file)
	}
	calls := map[string]int{}
	for segment, want := range map[string]string{"network.back>5ms": "GET", "server>80ms": "DEBUG SLEEP"} {
		code, stdout, stderr := runHere(t, append([]string{"trace", "--json", "--segment", segment}, files...)...)
		if code != cli.ExitClean || !strings.Contains(stderr, "joined with their server's end") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
		for line := range strings.Lines(stdout) {
			if strings.Contains(line, `"op":"COMMAND DOCS"`) { // by redis-cli
				continue
			}
			if !strings.Contains(line, `"op":"`+want+`"`) || !strings.Contains(line, `"side":"both"`) {
				t.Errorf("%s: %s", segment, line)
			}
			calls[want]++
		}
	}
	if calls["GET"] != 5 || calls["DEBUG SLEEP"] != 5 {
		t.Errorf("%v", calls)
	}
}

// captureRun is slowpath capture while it runs.
type captureRun struct {
	cmd *exec.Cmd
	out lockedBuffer
}

// startCapture starts slowpath capture, and returns when packets are captured.
func startCapture(t *testing.T, cmd *exec.Cmd) *captureRun {
	t.Helper()
	c := &captureRun{cmd: cmd}
	c.cmd.Stderr = &c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	for end := time.Now().Add(patience); !strings.Contains(c.out.String(), "capturing"); {
		if await.Pass(10 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("it does not begin: %s", c.out.String())
		}
	}
	return c
}

// end ends it as Ctrl-C does, and gives what it has said.
func (c *captureRun) end(t *testing.T) string {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, c.out.String())
	}
	return c.out.String()
}

// TestCaptureRefused: what cannot be captured is one line that says why.
func TestCaptureRefused(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	file := filepath.Join(t.TempDir(), "a.pcapng")
	for _, c := range []struct {
		args string
		say  string
	}{
		{"", "add -o FILE.pcapng"},
		{"-o FILE --ring 1", "give 2 files or more"},
		{"-o FILE --file-size 5", "give 100000 bytes or more"},
		{"-o FILE --snaplen 40", "give 96 to 262144 bytes"},
		{"-o FILE --port 0", "give a port from 1 to 65535"},
		{"-o FILE 127.0.0.1:1 -p 2", "write HOST:PORT"},
		{"-o FILE /tmp/redis.sock", "a unix socket"},
		{"-o FILE --for -1s", "must not be negative"},
		{"-o FILE -i nope", "no such interface"},
	} {
		args := strings.Fields("capture " + strings.ReplaceAll(c.args, "FILE", file))
		code, stdout, stderr := runHere(t, args...)
		if code != cli.ExitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr,
			c.say) {
			t.Errorf("%s: exit code %d, %q", c.args, code, stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCaptureInDirectoryOfOthers: all files of a ring that root makes are root's, also in a directory of another user,
// who is not to read them.
func TestCaptureInDirectoryOfOthers(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	program := built(t, t.TempDir())
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	dir := t.TempDir()
	const daemon = 12345
	if err := os.Chown(dir, daemon, daemon); err != nil {
		t.Fatal(err)
	}
	c := startCapture(t, exec.Command(program, "capture", s.Addr, "-i", "lo", "--file-size", "100000", "-o",
		filepath.Join(dir, "a.pcapng")))
	call := callsTo(t, s.Addr)
	for range 300 {
		call("ECHO", strings.Repeat("x", 1000))
	}
	c.end(t)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) < 4 {
		t.Errorf("%d files", len(files))
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is of the user %d, %v", path, st.Uid, info.Mode())
		}
	}
}

// callsTo connects to a server, and gives a function that calls it.
func callsTo(t *testing.T, addr string) func(args ...string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	replies := resp.NewReader(conn, resp.Limits{})
	return func(args ...string) {
		b := fmt.Appendf(nil, "*%d\r\n", len(args))
		for _, a := range args {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
		}
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := replies.Skip(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCaptureDrops: what the kernel drops while the capture does not run is told, by it and by the verdict of its file.
func TestCaptureDrops(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	dir := t.TempDir()
	program := built(t, dir)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	c := startCapture(t, exec.Command(program, "capture", s.Addr, "-i", "lo", "-o", filepath.Join(dir, "a.pcapng")))
	call := callsTo(t, s.Addr)
	for range 20 {
		call("GET", "key")
	}
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 1<<20)
	for range 48 { // the kernel's buffer has 32 MiB
		call("SET", "key", value)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	said := c.end(t)
	if !strings.Contains(said, "the kernel dropped ") {
		t.Errorf("it does not say that packets were dropped: %s", said)
	}
	code, stdout, _ := runHere(t, "doctor", filepath.Join(dir, "a-00001.pcapng"), "--json")
	if code != cli.ExitClean || !strings.Contains(stdout, "who made the capture dropped them") {
		t.Errorf("exit code %d: the verdict does not have the drops: %s", code, stdout)
	}
}

// TestCaptureOfUser: a user captures with CAP_NET_RAW alone; without it the error names it, and no file is left.
func TestCaptureOfUser(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer, needs.Command("tcpdump", "tcpdump"))
	dir := shared(t)
	program := built(t, dir)
	for _, c := range []struct {
		caps  []uintptr
		code  int
		say   string
		files int
	}{
		{nil, cli.ExitMissing, "needs the capability CAP_NET_RAW, which is missing: run it as root", 0},
		{[]uintptr{unix.CAP_NET_RAW}, cli.ExitClean, "no packet matched", 1},
	} {
		path := filepath.Join(dir, "a.pcapng")
		cmd := exec.Command(program, "capture", "-p", "1", "-i", "lo", "--for", "100ms", "-o", path)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: 4321, Gid: 4322}, AmbientCaps: c.caps,
		}
		out, _ := cmd.CombinedOutput()
		files, _ := filepath.Glob(filepath.Join(dir, "a-*"))
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.say) ||
			len(files) != c.files {
			t.Errorf("exit code %d, %d files: %s", code, len(files), out)
		}
	}
}
