//go:build linux

package tap

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// looker reads what the connections of clients did last, by an iterator over sockets: the watched threads pay nothing
// for it.
type looker struct {
	iter *link.Iter
	next int64 // when the next look may be
	buf  []byte
}

const (
	// lookPause is how many times the CPU time of the last look there is none: looks take 0.2 % of a CPU at most.
	lookPause = 500
	// lookAfter is how long after a slow call of a client looks go on.
	lookAfter = int64(10e9)
	// maxLook is how many bytes of one look are read: of more connections than the programs watch.
	maxLook = 4 << 20
)

// onLook is the program that looks.
const onLook = "on_look"

// openLooker needs the programs in the kernel; without that of looks it gives nil.
func openLooker(coll *ebpf.Collection) (*looker, error) {
	p := coll.Programs[onLook]
	if p == nil {
		return nil, nil
	}
	iter, err := link.AttachIter(link.IterOptions{Program: p, Map: coll.Maps["conns"]})
	if err != nil {
		return nil, explain(err)
	}
	return &looker{iter: iter, buf: make([]byte, 64<<10)}, nil
}

// Close of a nil looker does nothing.
func (l *looker) Close() error {
	if l == nil {
		return nil
	}
	return l.iter.Close()
}

// read passes on what each connection did last.
func (l *looker) read(take func(*kernelGlance)) error {
	r, err := l.iter.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was only read
	rest, all := 0, 0
	for all < maxLook {
		n, err := r.Read(l.buf[rest:])
		n, all = n+rest, all+max(n, 0)
		const size = int(unsafe.Sizeof(kernelGlance{}))
		at := 0
		for ; n-at >= size; at += size {
			dispatch(l.buf[at:n], take)
		}
		rest = copy(l.buf, l.buf[at:n])
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look takes a look, if there are slow calls that it can be about.
func (t *Tap) look() {
	now := t.Clock.Now()
	if t.looks == nil || now < t.looks.next || !t.book.looks.wanted(now) {
		return
	}
	v := &view{at: now, ends: map[asker]exchange{}}
	runtime.LockOSThread()
	before := threadCPU()
	err := t.looks.read(func(g *kernelGlance) { t.book.glance(v, g) })
	t.looks.next = now + lookPause*(threadCPU()-before)
	runtime.UnlockOSThread()
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		t.Sink.Event(recording.Event{
			TimeNs: now, Source: recording.SourceTap, Subject: t.Nodes[0].Address,
			Kind:   recording.KindBlindSpot,
			Detail: recording.Detail(recording.BlindSpot{What: losingLooks, Why: reason, Enable: "run as root"}),
		})
		t.looks.next = 1 << 62
		return
	}
	t.book.looks.add(v)
}

// threadCPU is the time that the running thread had the CPU for, in nanoseconds.
func threadCPU() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
