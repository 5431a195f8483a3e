//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// openConnections is the command in which BenchmarkWatch opens connections: of one process, the limit of files that
// may be open is too low for all.
const openConnections = "open-connections"

// BenchmarkWatch is what `slowpath doctor HOST:PORT` takes, as root, beside many open connections of which each makes a
// call every two seconds: CPU time, peak memory, and the time from the end of the watch to the end of the process. The
// benchmark logs what the verdict says was left out.
func BenchmarkWatch(b *testing.B) {
	for _, size := range []struct{ servers, conns int }{{1, 1000}, {1, 19_900}, {3, 16_700}} {
		b.Run(fmt.Sprintf("servers=%d/connections=%d", size.servers, size.servers*size.conns), func(b *testing.B) {
			var targets []string
			for range size.servers {
				s := fleettest.Start(b, servers.Redis7015, fleet.Spec{
					Config: []string{fmt.Sprintf("maxclients %d", size.conns+50)},
				})
				targets = append(targets, s.Addr)
				openAll(b, s.Addr, size.conns)
			}
			for b.Loop() {
				watchOnce(b, targets)
			}
		})
	}
}

// openAll has a process keep so many connections open until the benchmark ends.
func openAll(b *testing.B, addr string, conns int) {
	c := exec.Command(openConnections, addr, strconv.Itoa(conns))
	c.Stderr = os.Stderr
	until, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	ready, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { until.Close(); _ = c.Wait() })
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		b.Fatalf("connections to %s are not open: %q, %v", addr, line, err)
	}
}

// keepOpen is the command openConnections ADDRESS COUNT. It ends with its input.
func keepOpen() error {
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	for i := range count {
		d := net.Dialer{
			LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/10_000))}, KeepAlive: -1, Control: lateBind,
		}
		c, err := d.Dial("tcp", os.Args[1])
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		go callEvery(c, 2*time.Second)
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// lateBind has the kernel choose a port at connect, by both addresses: at bind it looks for one that no socket has.
func lateBind(_, _ string, c syscall.RawConn) (err error) {
	outer := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(outer, err)
}

// callEvery makes a call in each interval, at a time that it draws.
func callEvery(c net.Conn, interval time.Duration) {
	wait := rand.N(interval)
	reply := make([]byte, 5)
	for {
		await.Pass(wait)
		wait = interval
		if _, err := c.Write([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")); err != nil {
			return
		}
		if _, err := io.ReadFull(c, reply); err != nil {
			return
		}
	}
}

func watchOnce(b *testing.B, targets []string) {
	var out, notes bytes.Buffer
	c := exec.Command("slowpath", append([]string{"doctor", "--for", "15s", "--json"}, targets...)...)
	c.Stdout, c.Stderr = &out, &notes
	err := c.Run()
	end := time.Now()
	if code := c.ProcessState.ExitCode(); code > cli.ExitFindings {
		b.Fatalf("exit code %d, %v: %s", code, err, notes.String())
	}
	var d struct {
		Window struct {
			Start   time.Time
			Seconds float64
		}
		Verdict    string
		BlindSpots []struct{ What, Why string } `json:"blind_spots"`
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		b.Fatal(err)
	}
	for _, s := range d.BlindSpots {
		b.Logf("not seen: %s: %s", s.What, s.Why)
	}
	b.Logf("%s\n%s", d.Verdict, strings.TrimSpace(notes.String()))
	verdict := end.Sub(d.Window.Start.Add(time.Duration(d.Window.Seconds * 1e9)))
	b.ReportMetric(verdict.Seconds(), "verdict-s")
	b.ReportMetric((c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), "cpu-s")
	b.ReportMetric(float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "peak-MiB")
}
