package profile

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/stacks"
)

// TestCallersInJava: threads of a JVM are sampled, and their methods have names once it has written the map of its
// compiler; until then it is said what writes it.
func TestCallersInJava(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.Command("java", "default-jdk-headless"),
		needs.Command("jcmd", "default-jdk-headless"))
	const program = `class Shop {
    static volatile long sum;
    static long total(long n) { long s = 0; for (long i = 0; i < n; i++) s = s * 31 + (i ^ s >>> 7); return s; }
    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> { while (true) sum += total(1000000); });
        t.start();
        t.join();
    }
}
`
	file := filepath.Join(t.TempDir(), "Shop.java")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	java := exec.CommandContext(t.Context(), "java", file)
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	pid := java.Process.Pid
	t.Cleanup(func() {
		_ = java.Process.Kill()
		_ = java.Wait()
		_ = os.Remove("/tmp/perf-" + strconv.Itoa(pid) + ".map")
	})
	await.Until(t, "a JVM", func() bool { return IsJVM(hostfs.Root{}, pid) })
	sink := &locked{rec: recording.New()}
	cpu := LoadCPU(Options{Clock: clock.New(), Sink: sink})
	if err := cpu.Start([]Process{{PID: pid, LoopOnly: true, Runtime: "jvm"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- cpu.Run(ctx) }()
	await.Until(t, "what writes the map", func() (said bool) {
		sink.do(func() {
			said = slices.ContainsFunc(blindSpots(sink.rec), func(e recording.Event) bool {
				return strings.Contains(e.Detail, "jcmd "+strconv.Itoa(pid)+" Compiler.perfmap")
			})
		})
		return said
	})
	await.Until(t, "samples in a method", func() (seen bool) {
		if text, err := exec.Command("jcmd", strconv.Itoa(pid), "Compiler.perfmap").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		sink.do(func() {
			for _, p := range sink.rec.Profiles {
				read, err := stacks.Read(p.Pprof)
				if err != nil {
					t.Error(err)
					return
				}
				seen = seen || slices.ContainsFunc(read.Stacks, func(s stacks.Stack) bool {
					return s.TID != int64(pid) && slices.Contains(s.Frames, "long Shop.total(long)")
				})
			}
		})
		return seen
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
