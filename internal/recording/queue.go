package recording

// Call adds a call with the segments that its source measured. A call without an id is given the next one.
func (w *Writer) Call(c Call, segs ...Segment) {
	if c.ID == 0 {
		c.ID = w.nextCall.Add(1)
	}
	w.put(callTable, []any{
		c.ID, c.Source, c.Conn, c.Op, c.KeyHash, c.ArgCount, c.RequestBytes, c.ReplyBytes,
		c.IntendedNs, c.StartNs, c.EndNs, c.Node, c.Slot, c.Error, c.Side, c.Client, c.Seq,
	})
	for _, s := range segs {
		w.put(segmentTable, []any{c.ID, s.Actor, s.State, s.FromNs, s.ToNs, s.Culprit})
	}
}

// Histogram adds the latencies of one second.
func (w *Writer) Histogram(h Histogram) {
	w.put(histogramTable, []any{h.Second, h.Source, h.Node, h.Op, h.HDR})
}

// Sample adds a number.
func (w *Writer) Sample(s Sample) {
	w.put(sampleTable, []any{s.TimeNs, s.Source, s.Subject, s.Name, s.Value})
}

// Event adds something that happened.
func (w *Writer) Event(e Event) {
	w.put(eventTable, []any{e.TimeNs, e.DurationNs, e.Source, e.Subject, e.Kind, e.Detail})
}

// Snapshot adds a text.
func (w *Writer) Snapshot(s Snapshot) {
	w.put(snapshotTable, []any{s.TimeNs, s.Source, s.Subject, s.Name, s.Body})
}

// Profile adds a profile.
func (w *Writer) Profile(p Profile) {
	w.put(profileTable, []any{p.TimeNs, p.Subject, p.Kind, p.Pprof})
}

// SetMeta sets a property of the whole recording; the last value of a key counts.
func (w *Writer) SetMeta(key, value string) {
	if key == MetaSlow {
		w.classes.setSlow(value)
	}
	w.enqueue(row{args: []any{key, value}, bytes: int64(len(key) + len(value))})
}

func (w *Writer) put(t *table, args []any) {
	if r, ok := w.classes.admit(t, args); ok {
		w.enqueue(r)
	}
}

// enqueue keeps the last quarter of the queue free for what is rare: rows of classes that are never left out.
func (w *Writer) enqueue(r row) {
	w.queued.Add(1)
	bytes := w.bytes.Add(r.bytes)
	if w.atOnce && (bytes > queueBytes/2 || len(w.rows) > queueRows/2) {
		_ = w.Flush() // its error is that of Close
	}
	frequent := r.into != nil && (r.class.sampled || r.into == sampleTable || r.into == connUseTable)
	if bytes <= queueBytes && !(frequent && (len(w.rows) > queueRows/4*3 || bytes > queueBytes/4*3)) {
		select {
		case w.rows <- r:
			return
		default:
		}
	}
	w.bytes.Add(-r.bytes)
	w.dropped.Add(1)
}
