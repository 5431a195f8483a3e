package ring

import (
	"encoding/binary"
	"math"

	"slowpath/internal/recording"
)

// Kinds of rows in a block.
const (
	rowCall byte = 1 + iota
	rowHistogram
	rowSample
	rowConnUse
	rowEvent
	rowSnapshot
	rowMeta
	rowProfile
	// rowBegin: another watch begins; nothing is carried over.
	rowBegin
	// rowLost: so many rows before this one were lost.
	rowLost
)

const (
	// mostShared is the length up to which a text is written once in a block, and then referred to.
	mostShared = 256
	// sharedTexts bounds how many there are.
	sharedTexts = 1 << 16
)

// encoder packs rows into a block. Texts that come again are numbers, and times are differences to that of the block.
type encoder struct {
	buf    []byte
	rows   int
	fromNs int64 // when the block began, by the ring's clock
	texts  map[string]uint64
}

func newEncoder(fromNs int64) *encoder {
	return &encoder{fromNs: fromNs, texts: map[string]uint64{}}
}

func (e *encoder) begin(kind byte) {
	e.buf = append(e.buf, kind)
	e.rows++
}

func (e *encoder) number(v int64)   { e.buf = binary.AppendVarint(e.buf, v) }
func (e *encoder) count(n int)      { e.buf = binary.AppendUvarint(e.buf, uint64(n)) }
func (e *encoder) time(ns int64)    { e.number(ns - e.fromNs) }
func (e *encoder) bytes(b []byte)   { e.count(len(b)); e.buf = append(e.buf, b...) }
func (e *encoder) body(text string) { e.count(len(text)); e.buf = append(e.buf, text...) }

// float writes whole numbers in few bytes: most samples are counters.
func (e *encoder) float(v float64) {
	if n := int64(v); float64(n) == v && n > -1<<53 && n < 1<<53 {
		e.buf = append(e.buf, 0)
		e.number(n)
		return
	}
	e.buf = append(e.buf, 1)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
}

// text writes a text that may come again: 0 and the text where it is new, 1 and the text where it is not shared, else
// its number and 2.
func (e *encoder) text(s string) {
	if n, known := e.texts[s]; known {
		e.buf = binary.AppendUvarint(e.buf, n+2)
		return
	}
	if len(s) > mostShared || len(e.texts) >= sharedTexts {
		e.buf = append(e.buf, 1)
		e.body(s)
		return
	}
	e.texts[s] = uint64(len(e.texts))
	e.buf = append(e.buf, 0)
	e.body(s)
}

func (e *encoder) call(c recording.Call, segs []recording.Segment) {
	e.begin(rowCall)
	for _, s := range [...]string{c.Source, c.Conn, c.Op, c.KeyHash, c.Node, c.Error, c.Side, c.Client} {
		e.text(s)
	}
	for _, n := range [...]int64{
		int64(c.ArgCount), c.RequestBytes, c.ReplyBytes, int64(c.Slot), int64(c.Seq),
	} {
		e.number(n)
	}
	e.time(c.IntendedNs)
	e.number(c.StartNs - c.IntendedNs)
	e.number(c.EndNs - c.IntendedNs)
	e.count(len(segs))
	for _, s := range segs {
		e.text(s.Actor)
		e.text(s.State)
		e.text(s.Culprit)
		e.number(s.FromNs - c.IntendedNs)
		e.number(s.ToNs - c.IntendedNs)
	}
}

func (e *encoder) histogram(h recording.Histogram) {
	e.begin(rowHistogram)
	e.number(h.Second)
	e.text(h.Source)
	e.text(h.Node)
	e.text(h.Op)
	e.bytes(h.HDR)
}

func (e *encoder) sample(s recording.Sample) {
	e.begin(rowSample)
	e.time(s.TimeNs)
	e.text(s.Source)
	e.text(s.Subject)
	e.text(s.Name)
	e.float(s.Value)
}

func (e *encoder) connUse(client string, u recording.ConnUse) {
	e.begin(rowConnUse)
	e.text(client)
	e.time(u.TimeNs)
	for _, n := range numbersOf(&u) {
		e.number(*n)
	}
}

// numbersOf are all numbers of a use but its time.
func numbersOf(u *recording.ConnUse) [11]*int64 {
	return [...]*int64{
		&u.Calls, &u.InFlightNs, &u.IdleNs, &u.Prompt, &u.Turns, &u.Handed, &u.WaitedNs, &u.WaitedMaxNs, &u.KeptNs,
		&u.Served, &u.IdleMaxNs,
	}
}

func (e *encoder) event(v recording.Event) {
	e.begin(rowEvent)
	e.time(v.TimeNs)
	e.number(v.DurationNs)
	e.text(v.Source)
	e.text(v.Subject)
	e.text(v.Kind)
	e.body(v.Detail)
}

func (e *encoder) snapshot(s recording.Snapshot) {
	e.begin(rowSnapshot)
	e.time(s.TimeNs)
	e.text(s.Source)
	e.text(s.Subject)
	e.text(s.Name)
	e.body(s.Body)
}

func (e *encoder) meta(key, value string) {
	e.begin(rowMeta)
	e.text(key)
	e.body(value)
}

func (e *encoder) profile(p recording.Profile) {
	e.begin(rowProfile)
	e.time(p.TimeNs)
	e.text(p.Subject)
	e.text(p.Kind)
	e.bytes(p.Pprof)
}

// watch marks that another watch begins.
func (e *encoder) watch() { e.begin(rowBegin) }

// lost counts rows that were lost before the next one.
func (e *encoder) lost(rows int64) {
	e.begin(rowLost)
	e.number(rows)
}
