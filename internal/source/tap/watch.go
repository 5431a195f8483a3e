//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// Tap is a running kernel source.
type Tap struct {
	Options
	kernel     *loaded
	ring       *ringbuf.Reader
	offset     int64 // from CLOCK_MONOTONIC to the clock of the recording
	book       *book
	tally      tally
	collectors *collectorWatch
	plaintexts *plaintextWatch
	looks      *looker // nil: it cannot look, or there is but one node
}

// Open loads the programs and attaches them. From then on they see; Run passes on what they saw.
func Open(o Options) (*Tap, error) {
	if o.Slow == 0 {
		o.Slow = DefaultSlow
	}
	if o.MinWork == 0 {
		o.MinWork = DefaultMinWork
	}
	perTick := uint32(0)
	if o.SamplePerSecond > 0 {
		perTick = uint32(max(1, o.SamplePerSecond/ticksPerSecond))
	}
	l, err := load(constants{
		"slow_ns": uint64(o.Slow), "min_item_ns": uint64(o.MinWork), "min_offcpu_ns": uint64(o.MinWork),
		"sample_per_tick": perTick, "own_tgid": uint32(os.Getpid()), maxOps: opsFor(len(addressesOf(o.Nodes))),
	})
	if err != nil {
		return nil, err
	}
	t := &Tap{Options: o, kernel: l, tally: tally{
		counters: make([]uint64, len(counterNames)),
		nodes:    addressesOf(o.Nodes), ops: map[uint16]nodeOp{}, hists: map[uint32][]uint32{},
	}}
	t.book = newBook(o, t.time, t.opOf)
	t.collectors, t.book.unread = newCollectorWatch(), t.askCollector
	t.plaintexts, t.book.sealed = newPlaintextWatch(l.coll.Programs), t.askPlaintext
	t.book.gone, t.book.remote, t.book.parsed = t.collectors.forget, t.hearAcks, t.hearSends
	if err := t.collectors.load(l.coll.Maps["events"]); err != nil {
		return nil, errors.Join(err, t.collectors.Close(), l.Close())
	}
	if t.ring, err = ringbuf.NewReader(l.coll.Maps["events"]); err != nil {
		_ = errors.Join(t.collectors.Close(), l.Close()) // the first error counts
		return nil, fmt.Errorf("opening the ring buffer: %w", err)
	}
	t.offset = o.Clock.Now() - monotonic()
	if t.book.looks.several {
		if t.looks, err = openLooker(l.coll); err != nil {
			l.blind = append(l.blind, recording.BlindSpot{What: losingLooks, Why: err.Error(), Enable: "run as root"})
		}
	}
	if err := t.nameNodes(); err != nil {
		t.Close()
		return nil, err
	}
	for _, port := range t.book.ports() {
		if err := l.coll.Maps["ports"].Put(uint32(port), uint8(1)); err != nil {
			t.Close()
			return nil, fmt.Errorf("naming port %d to the programs: %w", port, err)
		}
	}
	if slices.ContainsFunc(o.Nodes, func(n Node) bool { return n.PID == 0 }) {
		t.hearSends()
	}
	for _, n := range o.Nodes {
		if n.PID == 0 || l.coll.Programs[functions[0]] == nil {
			continue
		}
		if err := t.hookInternals(n.PID); err != nil {
			t.kernel.blind = append(t.kernel.blind, recording.BlindSpot{
				What: "functions inside of " + n.Address,
				Why:  err.Error(), Enable: "a binary that names its functions (Debian's does)",
			})
		}
		_ = t.plaintexts.ask(n.PID, roleServer) // that it cannot be asked matters once it speaks TLS
	}
	return t, nil
}

// ticksPerSecond of 2^20 ns.
const ticksPerSecond = 954

// Close detaches the programs. Nothing of them stays in the kernel.
func (t *Tap) Close() error {
	return errors.Join(t.ring.Close(), t.looks.Close(), t.collectors.Close(), t.plaintexts.Close(), t.kernel.Close())
}

// Blind lists what cannot be seen although the source runs.
func (t *Tap) Blind() []recording.BlindSpot { return t.kernel.blind }

// hearAcks looks at acknowledgements from now on: there is a client on another host.
func (t *Tap) hearAcks() { t.hear(hookAck) }

// hearSends looks at when sends begin from now on: there is a client whose own end is parsed.
func (t *Tap) hearSends() { t.hear(hookSending) }

func (t *Tap) hear(hook string) {
	if err := t.kernel.attachLate(hook); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		t.Sink.Event(recording.Event{
			TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: t.Nodes[0].Address,
			Kind:   recording.KindBlindSpot,
			Detail: recording.Detail(recording.BlindSpot{What: losing(hook), Why: reason, Enable: "run as root"}),
		})
	}
}

// time turns the programs' time into that of the recording; 0 stays 0.
func (t *Tap) time(ns uint64) int64 {
	if ns == 0 {
		return 0
	}
	return int64(ns) + t.offset
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// Run passes on what the programs see until ctx ends.
func (t *Tap) Run(ctx context.Context) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		if err := t.drain(drainEvery, drainBytes); err != nil {
			return err
		}
		t.look()
		t.book.settle(t.Clock.Now())
		select {
		case <-ctx.Done():
			if err := t.drain(0, t.ring.AvailableBytes()); err != nil {
				return err
			}
			t.ongoing()
			t.book.crowd.tell(t.Options)
			t.book.settle(1 << 62)
			t.count()
			return nil
		case <-second.C:
			t.count()
		default:
		}
	}
}

// drain passes reports on as they are found after a wait, most bytes of them: where they come faster than they are read
// the ring is never empty.
func (t *Tap) drain(wait time.Duration, most int) error {
	const header = 8 // of a report in the ring (struct bpf_ringbuf_hdr)
	var rec ringbuf.Record
	t.ring.SetDeadline(time.Now().Add(wait))
	for most > 0 {
		err := t.ring.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the ring buffer: %w", err)
		}
		most -= header + len(rec.RawSample)
		t.take(rec.RawSample)
	}
	return nil
}

// take passes one report on.
func (t *Tap) take(raw []byte) {
	if len(raw) == 0 {
		return
	}
	switch raw[0] {
	case evCall:
		dispatch(raw, t.book.call)
	case evItem:
		dispatch(raw, t.book.item)
	case evOffCPU:
		dispatch(raw, t.book.offCPU)
	case evOpen, evClose, evStatus:
		dispatch(raw, t.book.conn)
	case evRetrans:
		dispatch(raw, t.book.retransmit)
	case evAcked:
		dispatch(raw, t.book.acknowledged)
	case evLookup:
		dispatch(raw, t.book.lookup)
	case evInner:
		dispatch(raw, t.book.inner)
	case evCollection:
		dispatch(raw, t.collection)
	}
}

// dispatch copies a report into its type, whose layout is the kernel's.
func dispatch[T any](raw []byte, f func(*T)) {
	var e T
	if n := int(unsafe.Sizeof(e)); len(raw) >= n {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), n), raw)
		f(&e)
	}
}
