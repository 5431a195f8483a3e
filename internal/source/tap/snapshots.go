//go:build linux

package tap

import (
	"errors"
	"io"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
)

// snapshotReader reads the last exchange of each connection of clients.
type snapshotReader interface {
	// read passes them on, and says how much CPU time it took.
	read(take func(*kernelConnSnapshot)) (cpuNs int64, err error)
	Close() error
}

// fileIterator reads them by an iterator over open files: the watched threads pay nothing for it.
type fileIterator struct {
	iter *link.Iter
	buf  []byte
}

const (
	// snapshotPause times the CPU time of the last snapshot pass before the next: they take 0.2 % of a CPU at most.
	snapshotPause = 500
	// snapshotAfter is how long after a slow call of a client snapshots go on.
	snapshotAfter = int64(10e9)
	// maxSnapshotBytes of one snapshot are read: more than of all connections that the programs watch.
	maxSnapshotBytes = 4 << 20
)

// openSnapshots needs the programs in the kernel; without that of snapshots it gives nil.
func openSnapshots(coll *ebpf.Collection) (snapshotReader, error) {
	iter, err := openIterator(coll, kernelProgOnConnSnapshot)
	if iter == nil {
		return nil, err
	}
	return iter, nil
}

// openIterator gives nil where the program was not loaded.
func openIterator(coll *ebpf.Collection, program string) (*fileIterator, error) {
	p := coll.Programs[program]
	if p == nil {
		return nil, nil
	}
	iter, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, explain(err)
	}
	return &fileIterator{iter: iter, buf: make([]byte, 64<<10)}, nil
}

func (s *fileIterator) Close() error { return s.iter.Close() }

func (s *fileIterator) read(take func(*kernelConnSnapshot)) (cpuNs int64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := clock.ThreadCPU()
	err = s.readAll(take)
	return clock.ThreadCPU() - before, err
}

func (s *fileIterator) readAll(take func(*kernelConnSnapshot)) error {
	r, err := s.iter.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was only read
	rest, all := 0, 0
	for all < maxSnapshotBytes {
		n, err := r.Read(s.buf[rest:])
		n, all = n+rest, all+max(n, 0)
		const size = int(unsafe.Sizeof(kernelConnSnapshot{}))
		at := 0
		for ; n-at >= size; at += size {
			dispatch(s.buf[at:n], take)
		}
		rest = copy(s.buf, s.buf[at:n])
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		// EAGAIN: of a million files none was a connection that is watched
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
	return nil
}

// lastUses has the programs report how connections were used since they last did, up to a second of calls, and which
// calls wait for their replies.
func (t *Tap) lastUses() {
	if t.uses == nil {
		return
	}
	if _, err := t.uses.read(t.recorder.noReply); err != nil {
		t.blind(t.Nodes[0].Address, losingLastUses, firstLine(err), "run as root")
	}
}

// snapshot takes one, if there are slow calls that it can be about.
func (t *Tap) snapshot() {
	now := t.Clock.Now()
	if t.snapshots == nil || now < t.nextSnapshot || !t.recorder.snapshots.wanted(now) {
		return
	}
	v := &snapshot{at: now, exchanges: map[processNode]exchange{}}
	cpu, err := t.snapshots.read(func(c *kernelConnSnapshot) { t.recorder.addExchange(v, c) })
	t.nextSnapshot = now + snapshotPause*cpu
	if err != nil {
		t.blind(t.Nodes[0].Address, losingSnapshots, firstLine(err), "run as root")
		t.nextSnapshot = 1 << 62
		return
	}
	t.recorder.snapshots.add(v)
}
