//go:build linux

package tap

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/cilium/ebpf"

	"slowpath/internal/recording"
)

// counterNames are the programs' counters, in the order of bpf/types.h.
var counterNames = []string{
	"calls.server", "calls.client", "unaligned", "merged", "dropped", "no_memory",
	"threads_full", "iovecs",
	"garbage", "slow", "sampled", "excess", "push", "ops_full", "aligned", "no_buffer", "unreported", "late_acks",
}

// tally is what was read of the programs' maps so far.
type tally struct {
	counters  []uint64
	nodes     []string // addresses, in the order of their numbers
	ops       map[uint16]nodeOp
	hists     map[uint32][]uint32
	forgotten int
}

// nodeOp is what the programs number: a command, and the node that it was sent to, empty where that is none of those
// watched. CLIENT SETINFO has a number of its own for each thing that clients say of themselves by it: eight bytes of
// it, in upper case.
type nodeOp struct{ name, said, node string }

// opOf is a command by its number. Numbers are given once and stay.
func (t *Tap) opOf(op uint16) nodeOp {
	if c, ok := t.tally.ops[op]; ok {
		return c
	}
	t.readOps()
	if c, ok := t.tally.ops[op]; ok {
		return c
	}
	return nodeOp{name: "?"}
}

func (t *Tap) readOps() {
	var k kernelOpKey
	var op uint32
	for it := t.kernel.coll.Maps["ops"].Iterate(); it.Next(&k, &op); {
		c := nodeOp{name: opName(k.Name, k.Sub), said: opSaid(k.Name)}
		if n := int(k.Node); n > 0 && n <= len(t.tally.nodes) {
			c.node = t.tally.nodes[n-1]
		}
		t.tally.ops[uint16(op)] = c
	}
}

// count writes once per second what the programs counted and how long all calls took.
func (t *Tap) count() {
	now := t.Clock.Now()
	for i, name := range counterNames {
		v, err := sumPerCPU(t.kernel.coll.Maps["counters"], uint32(i))
		if err != nil {
			continue
		}
		if v != t.tally.counters[i] || name == "dropped" {
			t.tally.counters[i] = v
			t.Sink.Sample(recording.Sample{
				TimeNs: now, Source: recording.SourceTap, Subject: recording.SubjectSelf,
				Name: "tap." + name, Value: float64(v),
			})
		}
	}
	if v := t.book.forgotten; v != t.tally.forgotten {
		t.tally.forgotten = v
		t.Sink.Sample(recording.Sample{
			TimeNs: now, Source: recording.SourceTap, Subject: recording.SubjectSelf,
			Name: "tap.forgotten", Value: float64(v),
		})
	}
	t.tellWhom()
	t.readOps()
	for op, c := range t.tally.ops {
		if c.node == "" {
			continue
		}
		for role, side := range []string{recording.Server, recording.Client} {
			if t.Side != "" && t.Side != side {
				continue
			}
			t.histogram(uint32(op)*2+uint32(role), c.node, side+" "+c.name, now)
		}
	}
}

// tellWhom keeps up to date what the recording says of the calls that were left out.
func (t *Tap) tellWhom() {
	if c := t.book.chosen; c != nil {
		if told, news := c.tell(); news {
			t.Sink.SetMeta(recording.MetaProcessFilter, recording.Detail(told))
		}
	}
}

func sumPerCPU(m *ebpf.Map, key uint32) (sum uint64, err error) {
	var per []uint64
	if err = m.Lookup(key, &per); err != nil {
		return 0, err
	}
	for _, v := range per {
		sum += v
	}
	return sum, nil
}

// histogram writes what one series grew by since the last time.
func (t *Tap) histogram(key uint32, node, name string, now int64) {
	var per []kernelHist
	if t.kernel.coll.Maps["hists"].Lookup(key, &per) != nil {
		return
	}
	sum := make([]uint32, len(per[0].N))
	for i := range per {
		for j, n := range per[i].N {
			sum[j] += n
		}
	}
	last := t.tally.hists[key]
	h := hdrhistogram.New(1, int64(time.Minute), 2)
	grown := false
	for j, n := range sum {
		if last != nil {
			n -= last[j]
		}
		if n > 0 {
			grown = true
			_ = h.RecordValues(min(bucketNs(j), int64(time.Minute)), int64(n)) // within its bounds
		}
	}
	t.tally.hists[key] = sum
	if !grown {
		return
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return
	}
	t.Sink.Histogram(recording.Histogram{
		Second: now / 1e9, Source: recording.SourceTap, Node: node, Op: name,
		HDR: encoded,
	})
}

// histBits is HIST_BITS of bpf/types.h.
const histBits = 5

// bucketNs is the middle of a step of the programs' histograms.
func bucketNs(i int) int64 {
	if i < 1<<histBits {
		return int64(i)
	}
	e := i>>histBits - 1
	low := int64(1<<histBits+i&(1<<histBits-1)) << e
	return low + int64(1)<<e/2
}
