//go:build linux

package tap

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"testing"

	"slowpath/internal/house/needs"
)

// BenchmarkTLS: what a call under TLS costs its server's main thread, in nanoseconds of CPU: without the programs, with
// turns only, and with the names of commands by a hook at ssl_read_internal, or at the functions that have names.
func BenchmarkTLS(b *testing.B) {
	needs.Real(b, needs.BPF, needs.RedisServer, needs.QuietCPU)
	for _, mode := range []string{"none", "turns", "inner", "named"} {
		b.Run(mode, func(b *testing.B) {
			pid, port, _ := startTLS(b)
			if mode != "none" {
				r := openRaw(b, port, constants{})
				switch mode {
				case "inner":
					r.hook(b, pid, roleServer)
				case "named":
					r.hookAt(b, namedPlaces, pid, roleServer)
				}
				defer r.finish(b)
			}
			c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			text, reply := command("GET", "no-such-key"), make([]byte, 64)
			before := ranNs(b, pid)
			for b.Loop() {
				if _, err := io.WriteString(c, text); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(reply); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(ranNs(b, pid)-before)/float64(b.N), "server-ns/op")
		})
	}
}

// ranNs is the CPU time of a process's main thread (Documentation/scheduler/sched-stats.rst).
func ranNs(b *testing.B, pid int) (ns int64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &ns); err != nil {
		b.Fatal(err)
	}
	return ns
}
