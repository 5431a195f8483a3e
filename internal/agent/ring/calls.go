package ring

import (
	"context"
	"time"

	"slowpath/internal/recording"
)

// callsOf hands on the calls that ended in a time.
type callsOf struct {
	nothing
	fromNs, toNs int64
	to           func(recording.Call, ...recording.Segment)
}

// Call implements recording.Sink.
func (c callsOf) Call(call recording.Call, segs ...recording.Segment) {
	if call.EndNs >= c.fromNs && call.EndNs < c.toNs {
		c.to(call, segs...)
	}
}

// Sample implements recording.Sink.
func (callsOf) Sample(recording.Sample) {}

// SetMeta implements recording.Sink.
func (callsOf) SetMeta(string, string) {}

func (callsOf) beginWatch() {}

// Calls hands on the calls that ended in [from, to), as far as they are kept. What is damaged is left out.
func (r *Ring) Calls(ctx context.Context, from, to time.Time, f func(recording.Call, ...recording.Segment)) error {
	_ = r.Flush() // where that fails the rest is in memory
	into := callsOf{fromNs: from.UnixNano(), toNs: to.UnixNano(), to: f}
	parts, closeAll := r.parts(into.fromNs, into.toNs)
	defer closeAll()
	return readAll(ctx, parts, func(_ string, b *block) bool {
		if b != nil && !b.carried && b.toNs >= into.fromNs && b.fromNs < into.toNs+late {
			_ = decode(b.raw, b.fromNs, into)
		}
		return true
	})
}
