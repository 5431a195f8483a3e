//go:build linux

package tap

import (
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestSample: up to the rate every call is reported, however close together they are; of more a part, and no more than
// the rate allows.
func TestSample(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	port, pid := startServerPID(t, "127.0.0.1")
	const rate, few, many = 300, 250, 20_000
	source, rec := openTap(t, Options{
		Slow: time.Hour, SamplePerSecond: rate,
		Nodes: []Node{{
			Address: fmt.Sprintf("127.0.0.1:%d", port), PID: pid,
			Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
		}},
	})
	defer source.Close() //nolint:errcheck // what it would say, the attaching says
	calls := func(command string, times int) int {
		t.Helper()
		cli := exec.Command("redis-cli", "-p", strconv.Itoa(port), "-r", strconv.Itoa(times), command, "x")
		if out, err := cli.CombinedOutput(); err != nil {
			t.Fatalf("%v: %.200s", err, out)
		}
		if err := source.finish(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range rec.Calls {
			if c.Source == recording.SourceTap && c.Op == command {
				n++
			}
		}
		return n
	}
	if n := calls("STRLEN", few); n != few {
		t.Errorf("%d of %d calls were reported", n, few)
	}
	begin := time.Now()
	before := source.tally.counters[kernelCounterC_SAMPLED]
	n := calls("TYPE", many)
	o := constantsOf(source.Options, 1)
	burst, perTick := o[kernelVarSampleBurst].(uint32), o[kernelVarSamplePerTick].(uint32)
	ticks := uint64(time.Since(begin)>>kernelTickTICK_SHIFT) + 1
	most := (uint64(burst) + ticks*uint64(perTick)) * uint64(runtime.NumCPU())
	if got := source.tally.counters[kernelCounterC_SAMPLED] - before; n == 0 || got > most {
		t.Errorf("of %d calls %d were reported, by %d reports of at most %d", many, n, got, most)
	}
}
