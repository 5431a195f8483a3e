package ring

import (
	"encoding/binary"
	"errors"
	"math"

	"slowpath/internal/recording"
)

// errDamaged says that a block is none that this program wrote.
var errDamaged = errors.New("it is damaged")

// rows takes those of a block: a recording.ProfileSink that also knows where watches begin, and what was lost.
type rows interface {
	recording.ProfileSink
	beginWatch()
	lostRows(n int64)
}

// decoder reads the rows of a block. The first thing that cannot be ends it.
type decoder struct {
	buf    []byte
	fromNs int64
	texts  []string
	bad    bool
}

// decode hands the rows of a block on.
func decode(buf []byte, fromNs int64, to rows) error {
	d := &decoder{buf: buf, fromNs: fromNs}
	for len(d.buf) > 0 && !d.bad {
		kind := d.buf[0]
		d.buf = d.buf[1:]
		d.row(kind, to)
	}
	if d.bad {
		return errDamaged
	}
	return nil
}

func (d *decoder) row(kind byte, to rows) {
	switch kind {
	case rowCall:
		c, segs := d.call()
		pass(d, func() { to.Call(c, segs...) })
	case rowHistogram:
		h := recording.Histogram{Second: d.number(), Source: d.text(), Node: d.text(), Op: d.text(), HDR: d.bytes()}
		pass(d, func() { to.Histogram(h) })
	case rowSample:
		s := recording.Sample{TimeNs: d.time(), Source: d.text(), Subject: d.text(), Name: d.text(), Value: d.float()}
		pass(d, func() { to.Sample(s) })
	case rowConnUse:
		client, u := d.text(), recording.ConnUse{TimeNs: d.time()}
		for _, n := range numbersOf(&u) {
			*n = d.number()
		}
		pass(d, func() { to.ConnUse(client, u) })
	case rowEvent:
		v := recording.Event{
			TimeNs: d.time(), DurationNs: d.number(), Source: d.text(), Subject: d.text(), Kind: d.text(),
			Detail: d.body(),
		}
		pass(d, func() { to.Event(v) })
	case rowSnapshot:
		s := recording.Snapshot{TimeNs: d.time(), Source: d.text(), Subject: d.text(), Name: d.text(), Body: d.body()}
		pass(d, func() { to.Snapshot(s) })
	case rowMeta:
		key, value := d.text(), d.body()
		pass(d, func() { to.SetMeta(key, value) })
	case rowProfile:
		p := recording.Profile{TimeNs: d.time(), Subject: d.text(), Kind: d.text(), Pprof: d.bytes()}
		pass(d, func() { to.Profile(p) })
	case rowBegin:
		to.beginWatch()
	case rowLost:
		n := d.number()
		pass(d, func() { to.lostRows(n) })
	default:
		d.bad = true
	}
}

// pass hands a row on that was read whole.
func pass(d *decoder, f func()) {
	if !d.bad {
		f()
	}
}

func (d *decoder) call() (c recording.Call, segs []recording.Segment) {
	for _, s := range [...]*string{
		&c.Source, &c.Conn, &c.Op, &c.KeyHash, &c.Node, &c.Error, &c.Side, &c.Client,
	} {
		*s = d.text()
	}
	c.ArgCount, c.RequestBytes, c.ReplyBytes = int(d.number()), d.number(), d.number()
	c.Slot, c.Seq = int(d.number()), uint32(d.number())
	c.IntendedNs = d.time()
	c.StartNs, c.EndNs = c.IntendedNs+d.number(), c.IntendedNs+d.number()
	n := d.count()
	if n > len(d.buf)/5 { // a segment has five bytes or more
		d.bad = true
		return c, nil
	}
	segs = make([]recording.Segment, n)
	for i := range segs {
		segs[i] = recording.Segment{
			Actor: d.text(), State: d.text(), Culprit: d.text(), FromNs: c.IntendedNs + d.number(),
			ToNs: c.IntendedNs + d.number(),
		}
	}
	return c, segs
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

// count reads a length or a number of things, of which each takes a byte or more.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 || v > uint64(len(d.buf)-n) {
		d.bad = true
		return 0
	}
	d.buf = d.buf[n:]
	return int(v)
}

func (d *decoder) time() int64 { return d.fromNs + d.number() }

func (d *decoder) body() string { return string(d.take()) }

func (d *decoder) bytes() []byte { return append([]byte(nil), d.take()...) }

func (d *decoder) take() []byte {
	n := d.count()
	if d.bad {
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) float() float64 {
	if len(d.buf) == 0 {
		d.bad = true
		return 0
	}
	how := d.buf[0]
	d.buf = d.buf[1:]
	switch {
	case how == 0:
		return float64(d.number())
	case how == 1 && len(d.buf) >= 8:
		v := math.Float64frombits(binary.LittleEndian.Uint64(d.buf))
		d.buf = d.buf[8:]
		return v
	}
	d.bad = true
	return 0
}

func (d *decoder) text() string {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.bad = true
		return ""
	}
	d.buf = d.buf[n:]
	switch {
	case v == 0:
		s := d.body()
		d.texts = append(d.texts, s)
		return s
	case v == 1:
		return d.body()
	case v-2 < uint64(len(d.texts)):
		return d.texts[v-2]
	}
	d.bad = true
	return ""
}
