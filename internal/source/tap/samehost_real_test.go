//go:build linux

package tap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/stats"
)

// TestDefaultMode: without strict parsing, too, every call is counted once at each end, and the slow ones are reported
// with their own name and sizes, whatever the fast ones around them were.
func TestDefaultMode(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{"slow_ns": uint64(15e6)})
	all := stampers(t, port, 4, 1)
	slow := 0
	for i := range 10 {
		run(t, all[1:], 20)
		s := all[0]
		for range 20 {
			if err := s.batch(); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 0 {
			text := command("DEBUG", "SLEEP", "0.03")
			if _, err := s.conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.in.Discard(len("+OK\r\n")); err != nil {
				t.Fatal(err)
			}
			s.calls = append(s.calls, stamped{op: "DEBUG", request: len(text), reply: 5})
			slow++
		}
	}
	calls, counts := r.finish(t)
	made := 0
	for _, s := range all {
		made += len(s.calls)
	}
	if counts["calls.server"] != uint64(made) {
		t.Errorf("%d calls counted at the server, %d made: %v", counts["calls.server"], made, counts)
	}
	if missing := made - int(counts["calls.client"]); missing < 0 || missing > made/4 {
		t.Errorf("%d calls counted at the client, %d made", counts["calls.client"], made)
	}
	first := all[0].conn.LocalAddr().(*net.TCPAddr).AddrPort()
	seen := map[kernelRole]int{}
	for _, e := range calls {
		client, _ := endsOf(&e.Addr)
		i := slices.IndexFunc(all,
			func(s *stamper) bool { return s.conn.LocalAddr().(*net.TCPAddr).AddrPort() == client.AddrPort })
		if i < 0 || e.Flags&flagFresh != 0 {
			continue
		}
		if n := int(e.Number) - 1; n < 0 || n >= len(all[i].calls) || all[i].calls[n].request != int(e.ReqBytes) ||
			all[i].calls[n].reply != int(e.RepBytes) {
			t.Errorf("call %d of %v at end %d: %d bytes asked, %d replied, is not what was made", e.Number, client,
				e.Role, e.ReqBytes, e.RepBytes)
		}
		if client.AddrPort == first && all[0].calls[e.Number-1].op == "DEBUG" {
			seen[e.Role]++
			if ns := e.At[3] - e.At[0]; ns < 30e6 {
				t.Errorf("a call of 30 ms took %d ns", ns)
			}
		}
	}
	// A client that reads before the hook at the server's send has run sees nothing of it (see light_read); the
	// server's end does.
	if seen[roleServer] != slow || seen[roleClient] < slow/2 {
		t.Errorf("of %d slow calls %d were reported by the server's end, %d by the client's", slow, seen[roleServer],
			seen[roleClient])
	}
}

// BenchmarkAgreement: how far what the programs say a call took for its client is from what the client measured, per
// call: the median and the 10th and 90th percentile of client minus tap.
func BenchmarkAgreement(b *testing.B) {
	needs.Real(b, needs.BPF, needs.RedisServer, needs.QuietCPU)
	for name, strict := range map[string]uint32{"default": 0, "strict": 1} {
		b.Run(name, func(b *testing.B) {
			port := startServer(b)
			r := openRaw(b, port, constants{
				"strict_all": strict, "sample_per_tick": uint32(1 << 30),
				"slow_ns": uint64(1) << 60, ringBytes: uint32(64 << 20),
			})
			all := stampers(b, port, 1, 1)
			b.ResetTimer()
			run(b, all, b.N)
			b.StopTimer()
			calls, _ := r.finish(b)
			var differ []int64
			for _, e := range calls {
				if n := int(e.Number) - 1; e.Role == roleClient && n < len(all[0].calls) {
					c := all[0].calls[n]
					differ = append(differ, (c.received-c.sent)-int64(e.At[3]-e.At[0]))
				}
			}
			if len(differ) < b.N*9/10 {
				b.Fatalf("%d of %d calls were seen from the client's end", len(differ), b.N)
			}
			slices.Sort(differ)
			for _, p := range []int{10, 50, 90} {
				b.ReportMetric(float64(stats.Quantile(differ, float64(p)/100)), "ns-p"+strconv.Itoa(p))
			}
		})
	}
}

// BenchmarkAttach: attaching and detaching again, with nobody asked anything meanwhile.
func BenchmarkAttach(b *testing.B) {
	needs.Real(b, needs.BPF, needs.QuietCPU)
	for b.Loop() {
		l, err := loadWith(constants{})
		attached(b, err)
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAttachDetach: attaching to a busy server and detaching again leaves nothing behind, and no call fails.
func TestAttachDetach(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	all := stampers(t, port, 4, 4)
	done := make(chan struct{})
	failed := make(chan error, 4)
	for _, s := range all {
		go func() {
			for {
				select {
				case <-done:
					failed <- nil
					return
				default:
				}
				if err := s.batch(); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	var ours []ebpf.ProgramID // those of others, such as another package's tests, come and go meanwhile
	for range attachments() {
		l, err := loadWith(constants{})
		attached(t, err)
		for name, p := range l.coll.Programs {
			info, err := p.Info()
			if err != nil {
				t.Fatal(err)
			}
			id, ok := info.ID()
			if !ok {
				t.Fatalf("program %s has no id", name)
			}
			ours = append(ours, id)
		}
		watchPort(t, l, port)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	for range all {
		if err := <-failed; err != nil {
			t.Error("a call failed: ", err)
		}
	}
	if len(ours) == 0 {
		t.Error("nothing was attached")
	}
	await.UntilOr(t, func() bool {
		ours = slices.DeleteFunc(ours, func(id ebpf.ProgramID) bool { return !inKernel(t, id) })
		return len(ours) == 0
	}, func() string { return fmt.Sprintf("programs %v leave the kernel", ours) })
}

// inKernel says whether there is a program of this id, which no other is given.
func inKernel(t *testing.T, id ebpf.ProgramID) bool {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return true
}

// attachments is how often TestAttachDetach attaches: a few times, as it takes a second each, or SLOWPATH_ATTACH.
func attachments() int {
	if n, err := strconv.Atoi(os.Getenv("SLOWPATH_ATTACH")); err == nil {
		return n
	}
	return 5
}
