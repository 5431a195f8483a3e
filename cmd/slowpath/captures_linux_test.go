package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/diagnose/verdict"
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
	call := func() {
		if _, err := conn.Write([]byte("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := replies.Skip(); err != nil {
			t.Fatal(err)
		}
	}
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
	const more = 20
	for range more { // tcpdump has all of those before when it has some of these
		call()
	}
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

// tcpdump captures packets of a port until the function that it gives is called.
func tcpdump(t *testing.T, path, port string) (stop func()) {
	t.Helper()
	cmd := exec.Command("tcpdump", "-i", "lo", "-U", "--immediate-mode", "-w", path, "tcp port "+port)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := make([]byte, 4096) // "listening on lo": it captures from then on
	if n, err := stderr.Read(said); err != nil || !strings.Contains(string(said[:n]), "listening on") {
		t.Skipf("tcpdump cannot capture here: %s", said[:n])
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}
}
