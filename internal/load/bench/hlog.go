package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
)

// FromSend ends the tag of a histogram that counts from the send; the others count from the intended time.
const FromSend = ":send"

// HistogramLog writes the latencies of each second and op in the HdrHistogram log format 1.3, which the tools of
// hdrhistogram.org read. Tags are the ops; in an open loop there is a second histogram of each, whose tag ends in
// FromSend. Values are nanoseconds, maxima in the lines milliseconds.
type HistogramLog struct {
	log     *hdrhistogram.HistogramLogWriter
	ops     []string
	startNs int64
	err     error
}

// NewHistogramLog writes the header; startNs is when the load begins, since the epoch.
func NewHistogramLog(w io.Writer, ops []string, startNs int64) *HistogramLog {
	l := &HistogramLog{log: hdrhistogram.NewHistogramLogWriter(w), startNs: startNs}
	for _, op := range ops {
		l.ops = append(l.ops, strings.Map(tagRune, op))
	}
	l.keep(l.log.OutputComment("[Logged by slowpath bench: nanoseconds from the intended time; tags that end in " +
		FromSend + ": from the send]"))
	l.keep(l.log.OutputLogFormatVersion())
	l.keep(l.log.OutputStartTime(startNs / 1e6))
	l.keep(l.log.OutputLegend())
	return l
}

// tagRune: a tag has no comma, no space and no line break.
func tagRune(r rune) rune {
	if r <= ' ' || r == ',' || r == 0x7f {
		return '_'
	}
	return r
}

// Second writes the histograms of a second; those without calls are left out.
func (l *HistogramLog) Second(s Second, t *engine.Tally) {
	for i, op := range l.ops {
		o := &t.Ops[i]
		if o.Response == nil {
			l.interval(op, s, o.Service)
			continue
		}
		l.interval(op, s, o.Response)
		l.interval(op+FromSend, s, o.Service)
	}
}

func (l *HistogramLog) interval(tag string, s Second, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	h.SetTag(tag)
	h.SetStartTimeMs(l.startNs/1e6 + int64(s.Second)*1000)
	h.SetEndTimeMs(h.StartTimeMs() + int64(s.Seconds*1000))
	if err := l.log.OutputIntervalHistogram(h); err != nil {
		l.keep(fmt.Errorf("writing the histogram of %s: %w", tag, err))
	}
}

func (l *HistogramLog) keep(err error) {
	if l.err == nil {
		l.err = err
	}
}

// Err is the first error of a write.
func (l *HistogramLog) Err() error { return l.err }
