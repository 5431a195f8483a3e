//go:build linux

package tap

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// Tap is a running tap.
type Tap struct {
	Options
	kernel       *loaded
	reports      reports
	counts       counts
	offset       int64 // from CLOCK_MONOTONIC to the clock of the recording
	recorder     *recorder
	tally        tally
	collections  *collectionWatch
	plaintexts   *plaintextWatch
	goPrograms   goWatch
	functions    map[uint32][]link.Link // hooks of servers' own functions, by process
	ends         processEnds
	restarts     chan restart
	uses         *fileIterator  // nil: the kernel has no such iterator
	snapshots    snapshotReader // nil: the kernel has no such iterator, or there is one node only
	nextSnapshot int64          // when it may be taken
	cost         hookCost
	counted      int64 // when counters were read last,
	told         int64 // and when it was recorded last what was not seen

	closing sync.RWMutex // of closed, for those who use maps beside Run
	closed  bool
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
	monotonic, err := clock.Monotonic()
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's clock: %w", err)
	}
	offset := o.Clock.Now() - monotonic
	spec, err := specWith(constantsOf(o, nodes))
	if err != nil {
		return nil, err
	}
	if o.ReportBytes > 0 {
		spec.Maps[kernelMapEvents].MaxEntries = o.ReportBytes
	}
	l, err := load(spec)
	if err != nil {
		return nil, err
	}
	t := &Tap{Options: o, kernel: l, offset: offset, restarts: make(chan restart, maxRestarts)}
	if t.counts, err = newMapReader(l.coll.Maps); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	t.functions, t.ends = map[uint32][]link.Link{}, processEnds{files: o.Files, started: map[uint32]string{}}
	t.collections = newCollectionWatch(l.coll.Programs, o.Files)
	t.plaintexts = newPlaintextWatch(l.coll.Programs, o.Files)
	t.goPrograms = newGoWatch(l.coll)
	t.cost.measuring, _ = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	return t, nil
}

// Watch attaches the programs, and has them watch these nodes. It needs no right but CAP_PERFMON where HooksLater.
func (t *Tap) Watch(nodes []Node) (err error) {
	l := t.kernel
	t.follows(nodes)
	t.recorder.onCaller = t.callsByThread
	t.recorder.onUnread, t.recorder.onTLS = t.watchCollections, t.watchPlaintext
	t.recorder.onRemoteClient, t.recorder.onParsedClient = t.watchAcks, t.watchSends
	t.recorder.onDropped = t.collections.drop
	t.recorder.sample.put, t.recorder.sample.tell = t.leaveOut, t.tellLeftOut
	if err := l.attach(); err != nil {
		return err
	}
	ring, err := ringbuf.NewReader(l.coll.Maps[kernelMapEvents])
	if err != nil {
		return fmt.Errorf("opening the ring buffer: %w", err)
	}
	t.reports = ring
	if t.uses, err = openIterator(l.coll, kernelProgOnConnStatus); err != nil {
		l.addBlind(losingLastUses, err.Error(), "run as root")
	}
	if t.recorder.snapshots.several {
		if t.snapshots, err = openSnapshots(l.coll); err != nil {
			l.addBlind(losingSnapshots, err.Error(), "run as root")
		}
	}
	for _, n := range nodes {
		for _, client := range n.Observers { // before any call is followed
			t.Observe(n.Address, client)
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

// follows makes what turns the programs' reports and counts of these nodes into rows of the recording.
func (t *Tap) follows(nodes []Node) {
	t.Nodes = slices.Clone(nodes)
	t.tally = tally{
		counters: make([]uint64, len(t.kernel.counters)), hists: map[uint32]*kernelHist{},
		operations: map[uint32]*kernelHist{}, nodes: addressesOf(t.Nodes), ops: map[uint16]nodeOp{},
		errors: map[kernelErrorKey]uint64{},
	}
	t.recorder = newRecorder(t.Options, t.time, t.opOf)
	if files, ok := t.Files.(hostfs.FS); ok { // those of a tape are not
		t.recorder.functionIn = func(pid uint32, stack []uint64) string {
			return t.goPrograms.functionIn(files, pid, stack)
		}
	}
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
	t.ends.watch(uint32(n.PID))
	err := t.hookFunctions(n.PID)
	_ = t.plaintexts.watch(n.PID, roleServer) // that it cannot be watched matters once it speaks TLS
	return err
}

// Close detaches the programs. Nothing of them stays in the kernel.
func (t *Tap) Close() error {
	t.closing.Lock()
	t.closed = true
	t.closing.Unlock()
	all := []io.Closer{t.kernel, t.plaintexts, t.collections, &t.goPrograms}
	if t.uses != nil {
		all = append(all, t.uses)
	}
	if t.snapshots != nil {
		all = append(all, t.snapshots)
	}
	if t.cost.measuring != nil {
		all = append(all, t.cost.measuring)
	}
	if t.reports != nil {
		all = append(all, t.reports)
	}
	var errs []error
	for _, links := range t.functions {
		errs = append(errs, closeAll(links))
	}
	for _, c := range slices.Backward(all) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
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
