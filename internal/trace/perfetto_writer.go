package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// eventWriter writes the events of a file in the Trace Event Format. It keeps the first error.
type eventWriter struct {
	w        *bufio.Writer
	zero     int64 // begin of the file's time, nanoseconds since the Unix epoch
	pid, tid int
	some     bool
	err      error
}

// firstID is above all thread ids of Linux (2^22), so that Perfetto takes no track as the main thread of a process.
const firstID = 1 << 23

func newEvents(w io.Writer, zero int64) *eventWriter {
	o := &eventWriter{w: bufio.NewWriter(w), zero: zero}
	start := time.Unix(0, o.zero).UTC().Format(time.RFC3339Nano)
	fmt.Fprintf(o.w, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"made_by\":\"slowpath "+
		"trace\",\"start\":%q},\"traceEvents\":[", start)
	return o
}

func (o *eventWriter) end() error {
	o.w.WriteString("\n]}\n")
	return cmp.Or(o.err, o.w.Flush())
}

func (o *eventWriter) process(name string) {
	o.pid = max(o.pid, o.tid, firstID) + 1
	o.tid = o.pid
	o.meta("process_name", "name", name)
	o.meta("process_sort_index", "sort_index", o.pid-firstID)
}

func (o *eventWriter) track(name string) {
	o.tid++
	o.meta("thread_name", "name", name)
	o.meta("thread_sort_index", "sort_index", o.tid-firstID)
}

func (o *eventWriter) meta(what, key string, value any) {
	o.event(map[string]any{"ph": "M", "name": what, "args": map[string]any{key: value}})
}

func (o *eventWriter) slice(s slice) {
	b := map[string]any{"ph": "B", "name": s.name, "cat": s.category, "ts": o.microseconds(s.from)}
	if len(s.args) > 0 {
		b["args"] = s.args
	}
	o.event(b)
	at := s.from
	for _, c := range s.children { // disjoint and within s, even in a damaged recording
		c.from = min(max(c.from, at), s.to)
		c.to = min(max(c.to, c.from), s.to)
		at = c.to
		o.slice(c)
	}
	o.event(map[string]any{"ph": "E", "ts": o.microseconds(s.to)})
}

// microseconds has the nanoseconds as decimals, from the begin of the file: exact in a float64 for three months.
func (o *eventWriter) microseconds(ns int64) json.Number {
	ns = max(0, ns-o.zero)
	return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000))
}

func (o *eventWriter) event(e map[string]any) {
	e["pid"], e["tid"] = o.pid, o.tid
	line, err := json.Marshal(e)
	if err != nil {
		o.err = cmp.Or(o.err, err)
		return
	}
	if o.some {
		o.w.WriteByte(',')
	}
	o.some = true
	o.w.WriteByte('\n')
	o.w.Write(line)
}
