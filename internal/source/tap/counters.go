//go:build linux

package tap

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// counterNames are the names of the programs' counters in a recording, by their numbers, from the programs' own enum
// counter: C_CALLS_SERVER is "calls.server", C_NO_MEMORY "no_memory".
func counterNames(spec *ebpf.CollectionSpec) ([]string, error) {
	var enum *btf.Enum
	if err := spec.Types.TypeByName("counter", &enum); err != nil {
		return nil, fmt.Errorf("reading the names of the programs' counters: %w", err)
	}
	names := make([]string, kernelCounterC_MAX)
	for _, v := range enum.Values {
		if v.Value < uint64(len(names)) {
			name := strings.ToLower(strings.TrimPrefix(v.Name, "C_"))
			names[v.Value] = strings.Replace(name, "calls_", "calls.", 1)
		}
	}
	return names, nil
}

// tally is what was read of the programs' maps so far.
type tally struct {
	counters []uint64
	nodes    []string // addresses, in the order of their numbers
	ops      map[uint16]nodeOp
	hists    map[uint32]*kernelHist
	// of operations and their calls
	operations map[uint32]*kernelHist
	errors     map[kernelErrorKey]uint64
	dropped    int
	taken      int64 // events
	calls      uint64
	some       bool // calls were counted the last time

	// memory of one histogram, for the next one
	hist      kernelHist
	latencies recording.LatencyCounts
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
	t.counts.eachOp(func(k kernelOpKey, op uint32) {
		c := nodeOp{name: opName(k.Name, k.Sub), said: libraryName(k.Name)}
		if n := int(k.Node); n > 0 && n <= len(t.tally.nodes) {
			c.node = t.tally.nodes[n-1]
		}
		t.tally.ops[uint16(op)] = c
	})
}

// alwaysWritten are counters of which the recording has a 0, too: events were lost, or could have been; and slowpath's
// own calls, which recordings without this counter have among those of the users.
var alwaysWritten = map[kernelCounter]bool{kernelCounterC_DROPPED: true, kernelCounterC_CALLS_OWN: true}

// count writes once per second what the programs counted and how long all calls took.
func (t *Tap) count() {
	now := t.Clock.Now()
	for i, name := range t.kernel.counters {
		v, err := t.counts.counter(i)
		if err != nil {
			continue
		}
		if v != t.tally.counters[i] || alwaysWritten[kernelCounter(i)] {
			t.tally.counters[i] = v
			t.sampleSelf(now, series.Tap(name), float64(v))
		}
	}
	if v := t.recorder.dropped; v != t.tally.dropped {
		t.tally.dropped = v
		t.sampleSelf(now, series.TapForgotten, float64(v))
	}
	t.recorder.writeRemote(now)
	t.writeFilter()
	t.readOps()
	t.countErrors(now)
	calls := t.tally.counters[kernelCounterC_CALLS_SERVER] + t.tally.counters[kernelCounterC_CALLS_CLIENT]
	some := calls != t.tally.calls
	// The programs count a call before they add its latency: what came between is found the next time.
	read := some || t.tally.some
	t.tally.calls, t.tally.some = calls, some
	if !read {
		return
	}
	for op, c := range t.tally.ops {
		if c.node == "" {
			continue
		}
		// the order of keys is that of add_latency of bpf/histograms.h
		for i, side := range []string{recording.Server, recording.Client} {
			if t.Side != "" && t.Side != side {
				continue
			}
			t.histogram(uint32(op)*2+uint32(i), c.node, side+" "+c.name, now)
		}
		if t.Side != recording.Server {
			t.operations(uint32(op)*2, c, now)
		}
	}
	t.recorder.writeWaitedCalls(now)
}

// countErrors writes how many error replies there were, by command and first word of the error: "?" where that is none
// of the server's.
func (t *Tap) countErrors(now int64) {
	t.counts.eachError(func(k kernelErrorKey, count uint64) {
		op, side := t.tally.ops[uint16(k.Op)], sideOf(kernelRole(k.Role))
		if op.node == "" || count == t.tally.errors[k] || t.Side != "" && t.Side != side {
			return
		}
		t.tally.errors[k] = count
		t.Sink.Sample(recording.Sample{
			TimeNs: now, Source: recording.SourceTap, Subject: op.node,
			Name: recording.ErrorRepliesName(side, op.name, errorCode(k)), Value: float64(count),
		})
	})
}

// errorCode is the first word of an error reply; "?" where that is no name.
func errorCode(k kernelErrorKey) string {
	if code := word(k.Name[0]) + word(k.Name[1]); code != "" {
		return code
	}
	return "?"
}

func (t *Tap) sampleSelf(now int64, of series.Name, value float64) {
	t.Sink.Sample(recording.Sample{
		TimeNs: now, Source: of.Source, Subject: of.Subject, Name: of.Name, Value: value,
	})
}

// writeFilter keeps up to date what the recording says of the calls that were left out.
func (t *Tap) writeFilter() {
	if f := t.recorder.filter; f != nil {
		if s, changed := f.summarize(); changed {
			t.Sink.SetMeta(recording.MetaProcessFilter, recording.Detail(s))
		}
	}
}

// histogram writes what one series grew by since the last time.
func (t *Tap) histogram(key uint32, node, name string, now int64) {
	if t.counts.histogram(key, &t.tally.hist) == nil {
		t.growth(t.tally.hists, key, node, name, now)
	}
}

// operations writes the operations of a command whose threads waited longer than its calls took, and these calls.
func (t *Tap) operations(key uint32, op nodeOp, now int64) {
	for i, side := range []string{recording.AwaitedCalls, recording.Operations} {
		if t.counts.operations(key+uint32(i), &t.tally.hist) == nil {
			t.growth(t.tally.operations, key+uint32(i), op.node, side+" "+op.name, now)
		}
	}
}

// growth writes what the histogram that was just read grew by since the last time.
func (t *Tap) growth(hists map[uint32]*kernelHist, key uint32, node, name string, now int64) {
	last := hists[key]
	if last == nil {
		if t.tally.hist == (kernelHist{}) {
			return // this end has seen none: most connections have one end here
		}
		last = &kernelHist{}
		hists[key] = last
	}
	h := &t.tally.latencies
	h.Reset()
	grown := false
	for step, sum := range t.tally.hist.N {
		if n := sum - last.N[step]; n > 0 {
			grown = true
			h.Add(bucketNs(step), int64(n))
		}
		last.N[step] = sum
	}
	if !grown {
		return
	}
	encoded, err := h.Encode()
	if err != nil {
		return
	}
	t.Sink.Histogram(recording.Histogram{
		Second: now / 1e9, Source: recording.SourceTap, Node: node, Op: name,
		HDR: encoded,
	})
}

const histBits = int(kernelHistSizeHIST_BITS)

// bucketOf is the step that counts a time in the programs' histograms: hist_step of bpf/histograms.h.
func bucketOf(ns int64) int {
	if ns < 1<<histBits {
		return int(max(ns, 0))
	}
	e := bits.Len64(uint64(ns)) - 1
	return min((e-histBits+1)<<histBits+int(ns>>(e-histBits))&(1<<histBits-1), int(kernelHistSizeHIST)-1)
}

// bucketNs is the middle of a step of the programs' histograms.
func bucketNs(i int) int64 {
	if i < 1<<histBits {
		return int64(i)
	}
	e := i>>histBits - 1
	low := int64(1<<histBits+i&(1<<histBits-1)) << e
	return low + int64(1)<<e/2
}
