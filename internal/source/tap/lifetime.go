//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Tap is a running tap.
type Tap struct {
	Options
	kernel      *loaded
	ring        *ringbuf.Reader
	offset      int64 // from CLOCK_MONOTONIC to the clock of the recording
	recorder    *recorder
	tally       tally
	scratch     scratch
	collections *collectionWatch
	plaintexts  *plaintextWatch
	restarts    chan restart
	snapshots   *snapshotReader // nil: the kernel has no such iterator, or there is one node only
	cost        hookCost
}

// Open loads the programs and attaches them. From then the programs see calls; Run passes on what they saw.
func Open(o Options) (*Tap, error) {
	t, err := Load(o, len(addressesOf(o.Nodes)))
	if err != nil {
		return nil, err
	}
	if err := t.Watch(o.Nodes); err != nil {
		_ = t.Close() // the first error counts
		return nil, err
	}
	return t, nil
}

// Load is the part of Open that needs the right to load programs (CAP_BPF). It needs no nodes, only how many there will
// be at most.
func Load(o Options, nodes int) (*Tap, error) {
	if o.Slow == 0 {
		o.Slow = DefaultSlow
	}
	if o.MinWork == 0 {
		o.MinWork = DefaultMinWork
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	if o.DrainEvery == 0 {
		o.DrainEvery = DefaultDrainEvery
	}
	monotonic, err := o.Clock.Monotonic()
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's clock: %w", err)
	}
	offset := o.Clock.Now() - monotonic
	spec, err := specWith(constantsOf(o, nodes))
	if err != nil {
		return nil, err
	}
	l, err := load(spec)
	if err != nil {
		return nil, err
	}
	t := &Tap{Options: o, kernel: l, offset: offset, restarts: make(chan restart, maxRestarts)}
	if t.scratch, err = newScratch(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	t.collections = newCollectionWatch(l.coll.Programs, o.Files)
	t.plaintexts = newPlaintextWatch(l.coll.Programs, o.Files)
	t.cost.measuring, _ = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	return t, nil
}

// Watch attaches the programs, and has them watch these nodes. It needs no right but CAP_PERFMON where HooksLater.
func (t *Tap) Watch(nodes []Node) (err error) {
	t.Nodes = slices.Clone(nodes)
	l := t.kernel
	t.tally = tally{
		counters: make([]uint64, len(l.counters)),
		nodes:    addressesOf(t.Nodes), ops: map[uint16]nodeOp{}, hists: map[uint32][]uint32{},
		errors: map[kernelErrorKey]uint64{},
	}
	t.recorder = newRecorder(t.Options, t.time, t.opOf)
	t.recorder.onUnread, t.recorder.onTLS = t.watchCollections, t.watchPlaintext
	t.recorder.onRemoteClient, t.recorder.onParsedClient = t.watchAcks, t.watchSends
	t.recorder.onDropped = t.collections.drop
	t.recorder.sample.put, t.recorder.sample.tell = t.leaveOut, t.tellLeftOut
	if err := l.attach(); err != nil {
		return err
	}
	if t.ring, err = ringbuf.NewReader(l.coll.Maps[kernelMapEvents]); err != nil {
		return fmt.Errorf("opening the ring buffer: %w", err)
	}
	if t.recorder.snapshots.several {
		if t.snapshots, err = openSnapshots(l.coll); err != nil {
			l.addBlind(losingSnapshots, err.Error(), "run as root")
		}
	}
	if err := t.nameNodes(); err != nil {
		return err
	}
	for _, port := range t.recorder.ports() {
		if err := l.coll.Maps[kernelMapPorts].Put(uint32(port), kernelPortUsePORT_OF_SERVER); err != nil {
			return fmt.Errorf("naming port %d to the programs: %w", port, err)
		}
	}
	t.watchNodes()
	t.beginHookCost()
	return nil
}

// HooksLater reports whether the kernel lets processes be hooked by who has no right but CAP_PERFMON: by links to many
// places at once (6.6). Hooks by perf need CAP_SYS_ADMIN in some versions.
func HooksLater() bool { return features.HaveBPFLinkUprobeMulti() == nil }

// constantsOf are the constants of the programs for a watch of so many nodes.
func constantsOf(o Options, nodes int) constants {
	// Both ends report a call. The rate is limited per tick, of which there are 954 in a second.
	const ticksPerSecond = (int(time.Second) + 1<<(kernelTickTICK_SHIFT-1)) >> kernelTickTICK_SHIFT
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		cpus = 1 // without /sys no program is loaded, and load says why
	}
	burst := uint32(2 * min(max(o.SamplePerSecond, 0), math.MaxUint32/2))
	perTick := burst / uint32(ticksPerSecond)
	if burst > 0 {
		perTick++
	}
	return constants{
		kernelVarSlowNs: uint64(o.Slow), kernelVarMinActivityNs: uint64(o.MinWork),
		kernelVarMinOffcpuNs: uint64(o.MinWork), kernelVarSamplePerTick: perTick, kernelVarSampleBurst: burst,
		kernelVarPidNamespace: ownPIDNamespace(o.Files), kernelVarMaxOps: opsFor(nodes, cpus),
		kernelVarMaxConns: uint32(o.Connections), kernelVarMaxPairs: uint32(o.Connections),
		kernelVarMaxThreads: threadsFor(o.Connections),
	}
}

// watchNodes attaches what is specific to the nodes: functions of servers on this host; for others, clients' sends.
func (t *Tap) watchNodes() {
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.PID == 0 }) {
		t.watchSends()
	}
	for _, n := range t.Nodes {
		if err := t.watchNode(n); err != nil {
			t.kernel.addBlind("functions inside of "+n.Address, err.Error(),
				"a binary that names its functions (Debian's does)")
		}
	}
}

// watchNode attaches what is specific to a server on this host.
func (t *Tap) watchNode(n Node) error {
	if n.PID == 0 || t.kernel.coll.Programs[kernelProgOnFunctionEntry] == nil {
		return nil
	}
	err := t.hookFunctions(n.PID)
	_ = t.plaintexts.watch(n.PID, roleServer) // that it cannot be watched matters once it speaks TLS
	return err
}

// Close detaches the programs. Nothing of them stays in the kernel.
func (t *Tap) Close() error {
	var ring, cost error
	if t.ring != nil {
		ring = t.ring.Close()
	}
	if t.cost.measuring != nil {
		cost = t.cost.measuring.Close()
	}
	return errors.Join(ring, cost, t.snapshots.Close(), t.collections.Close(), t.plaintexts.Close(), t.kernel.Close())
}

// Blind lists what cannot be seen although the source runs.
func (t *Tap) Blind() []recording.BlindSpot { return t.kernel.blind }

// watchAcks attaches the program that sees acknowledgements: there is a client on another host.
func (t *Tap) watchAcks() { t.attachHook(hookAck) }

// watchSends attaches the program that sees when sends begin: there is a client whose own end is parsed.
func (t *Tap) watchSends() { t.attachHook(hookSending) }

func (t *Tap) attachHook(hook string) {
	if err := t.kernel.attachLate(hook); err != nil {
		t.blind(t.Nodes[0].Address, losing(hook), firstLine(err), "run as root")
	}
}

// time turns the programs' time into that of the recording; 0 stays 0.
func (t *Tap) time(ns uint64) int64 {
	if ns == 0 {
		return 0
	}
	return int64(ns) + t.offset
}

// endOfWatch is later than all times of a recording: what waits for another event does so no more.
const endOfWatch = 1 << 62

// Run passes on what the programs see until ctx ends.
func (t *Tap) Run(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close() //nolint:errcheck // a timer
	counted := t.Clock.Now()
	told := counted
	for {
		more, err := t.drain(drainBytes)
		if err != nil {
			return err
		}
		t.snapshot()
		t.followRestarts()
		now := t.Clock.Now()
		t.recorder.settle(now)
		if now/1e9 > counted/1e9 && now-counted >= int64(leastCounted) {
			t.count()
			t.endHookCost()
			t.sampleConns()
			counted = now
		}
		if now-told >= int64(unseenEvery) {
			t.writeUnseen() // a watch may be killed
			told = now
		}
		if ctx.Err() != nil {
			return t.finish()
		}
		if !more {
			alarm.Sleep(t.DrainEvery)
		}
	}
}

// leastCounted is the least time that is counted. Counting begins with a new second of the clock, so that what is read
// then is of the second before, and no second is left out. Only the first time is shorter than a second.
const leastCounted = 500 * time.Millisecond

// unseenEvery is how often a long watch records what it did not see.
const unseenEvery = 30 * time.Second

// finish passes on the rest at the end of a watch.
func (t *Tap) finish() error {
	if _, err := t.drain(t.ring.AvailableBytes()); err != nil {
		return err
	}
	t.endHookCost()
	t.ongoing()
	t.recorder.waitLimit.report(t.Options)
	t.recorder.settle(endOfWatch)
	t.count()
	t.writeUnseen()
	return nil
}

// past is a deadline that has passed: reading does not wait, as the programs wake nobody.
var past = time.Unix(1, 0)

// drain passes on the events that are in the ring buffer, up to `most` bytes of them: where they come faster than they
// are read it is never empty. It reports whether there may be more.
func (t *Tap) drain(most int) (more bool, err error) {
	if t.ring.AvailableBytes() == 0 {
		return false, nil
	}
	var rec ringbuf.Record
	t.ring.SetDeadline(past)
	for most > 0 {
		err := t.ring.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the ring buffer: %w", err)
		}
		t.tally.taken++
		most -= unix.BPF_RINGBUF_HDR_SZ + len(rec.RawSample)
		t.take(rec.RawSample)
	}
	return true, nil
}
