//go:build linux

package tap

import (
	"slowpath/internal/recording"

	"slowpath/internal/recording/series"
)

// readers are the threads of client processes that read replies: where there is only one, a reply that is in the socket
// waits for that one.
type readers map[uint32]map[uint32]bool // by process

// maxReaders: it does not matter how many more there are.
const maxReaders = 64

// add reports how many there are when that changed, else 0.
func (r readers) add(pid, tid uint32) int {
	threads := r[pid]
	if threads == nil {
		threads = map[uint32]bool{}
		r[pid] = threads
	}
	if tid == 0 || threads[tid] || len(threads) >= maxReaders {
		return 0
	}
	threads[tid] = true
	return len(threads)
}

// reader records which thread read a reply, and reports a process that left one unread for as long as a slow call
// takes.
func (r *recorder) reader(e *kernelCallEvent) {
	if e.Role != roleClient || e.Tgid == 0 || e.Addr.Observer != notObserver {
		return
	}
	if k := r.readers.add(e.Tgid, e.Tid); k > 0 {
		r.Sink.Sample(recording.Sample{
			TimeNs: r.time(e.At[3]), Source: recording.SourceTap,
			Subject: recording.ProcessPrefix + itoa(int(e.Tgid)), Name: series.Readers.Name, Value: float64(k),
		})
	}
	if e.At[2] != 0 && e.At[3] > e.At[2] && e.At[3]-e.At[2] >= uint64(r.Slow) && r.onUnread != nil {
		r.onUnread(e.Tgid)
	}
}

// stalled reports a process whose event loop did something else for long, whether or not a reply lay unread meanwhile.
func (r *recorder) stalled(e *kernelStalledEvent) {
	if r.onUnread != nil {
		r.onUnread(e.Tgid)
	}
}
