//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

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
	collections *collectionWatch
	plaintexts  *plaintextWatch
	restarts    chan restart
	snapshots   *snapshotReader // nil: the kernel has no such iterator, or there is one node only
	cost        hookCost
}

// Open loads the programs and attaches them. From then the programs see calls; Run passes on what they saw.
func Open(o Options) (t *Tap, err error) {
	if o.Slow == 0 {
		o.Slow = DefaultSlow
	}
	if o.MinWork == 0 {
		o.MinWork = DefaultMinWork
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	monotonic, err := o.Clock.Monotonic()
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's clock: %w", err)
	}
	offset := o.Clock.Now() - monotonic
	spec, err := specWith(constantsOf(o))
	if err != nil {
		return nil, err
	}
	l, err := load(spec)
	if err != nil {
		return nil, err
	}
	o.Nodes = slices.Clone(o.Nodes)
	t = &Tap{Options: o, kernel: l, offset: offset, restarts: make(chan restart, maxRestarts), tally: tally{
		counters: make([]uint64, len(l.counters)),
		nodes:    addressesOf(o.Nodes), ops: map[uint16]nodeOp{}, hists: map[uint32][]uint32{},
		errors: map[kernelErrorKey]uint64{},
	}}
	t.recorder = newRecorder(o, t.time, t.opOf)
	t.collections = newCollectionWatch(l.coll.Programs, o.Files)
	t.plaintexts = newPlaintextWatch(l.coll.Programs, o.Files)
	t.recorder.onUnread, t.recorder.onTLS = t.watchCollections, t.watchPlaintext
	t.recorder.onRemoteClient, t.recorder.onParsedClient = t.watchAcks, t.watchSends
	t.recorder.onDropped = t.collections.drop
	t.recorder.sample.put, t.recorder.sample.tell = t.leaveOut, t.tellLeftOut
	defer func() {
		if err != nil {
			_ = t.Close() // the first error counts
			t = nil
		}
	}()
	if t.ring, err = ringbuf.NewReader(l.coll.Maps[kernelMapEvents]); err != nil {
		return t, fmt.Errorf("opening the ring buffer: %w", err)
	}
	if t.recorder.snapshots.several {
		var err error
		if t.snapshots, err = openSnapshots(l.coll); err != nil {
			l.addBlind(losingSnapshots, err.Error(), "run as root")
		}
	}
	if err := t.nameNodes(); err != nil {
		return t, err
	}
	for _, port := range t.recorder.ports() {
		if err := l.coll.Maps[kernelMapPorts].Put(uint32(port), kernelPortUsePORT_OF_SERVER); err != nil {
			return t, fmt.Errorf("naming port %d to the programs: %w", port, err)
		}
	}
	t.watchNodes()
	t.beginHookCost()
	return t, nil
}

// constantsOf are the constants of the programs for a watch.
func constantsOf(o Options) constants {
	// events of the sample are limited per tick, of which there are 954 in a second
	const ticksPerSecond = (int(time.Second) + 1<<(kernelTickTICK_SHIFT-1)) >> kernelTickTICK_SHIFT
	perTick := uint32(0)
	if o.SamplePerSecond > 0 {
		perTick = uint32(max(1, o.SamplePerSecond/ticksPerSecond))
	}
	return constants{
		kernelVarSlowNs: uint64(o.Slow), kernelVarMinActivityNs: uint64(o.MinWork),
		kernelVarMinOffcpuNs: uint64(o.MinWork), kernelVarSamplePerTick: perTick,
		kernelVarPidNamespace: ownPIDNamespace(o.Files), kernelVarMaxOps: opsFor(len(addressesOf(o.Nodes))),
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
		if now-counted >= int64(time.Second) {
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
			alarm.Sleep(drainEvery)
		}
	}
}

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
