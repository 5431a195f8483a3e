package probe

import (
	"sync"
	"time"

	"slowpath/internal/recording"
)

// Range of the histograms: 1 µs to 1 h with three digits, in nanoseconds.
const (
	histMin    = 1_000
	histMax    = 3_600_000_000_000
	histDigits = 3
)

// histograms keeps the latencies of the current second per kind of connection and command, and emits each second.
type histograms struct {
	sink   recording.Sink
	node   string
	mu     sync.Mutex
	second int64
	open   map[string][]int64 // nanoseconds, by "conn op"
}

func newHistograms(sink recording.Sink, node string) *histograms {
	return &histograms{sink: sink, node: node, open: map[string][]int64{}}
}

// add counts a call by its time without slowpath's own delay.
func (h *histograms) add(c recording.Call, felt time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := c.EndNs / 1e9; s != h.second {
		h.emit()
		h.second = s
	}
	key := c.Conn + " " + c.Op
	h.open[key] = append(h.open[key], min(max(int64(felt), 0), histMax))
}

func (h *histograms) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emit()
}

func (h *histograms) emit() {
	for key, times := range h.open {
		if len(times) == 0 {
			continue
		}
		if b, err := recording.EncodeTimes(times, histMin, histMax, histDigits); err == nil {
			h.sink.Histogram(recording.Histogram{
				Second: h.second, Source: recording.SourceProbe, Node: h.node, Op: key,
				HDR: b,
			})
		}
		h.open[key] = times[:0]
	}
}
