package workload

import (
	"strconv"

	"slowpath/internal/wire/cluster"
)

// Prefix begins every key that a load writes or reads, and every channel.
const Prefix = "slowpath:"

// template is an encoded request: steps of bytes in which only numbers of keys change, and between them arguments of
// variable length. It is not changed after compile.
type template struct {
	steps   []step
	replies uint16
	hasKey  bool
	// of the first key, where only its number changes; else nil, and its slot is computed from its bytes
	slots  *slotTable
	noSlot bool // it has no key argument
	plain  int  // offset of the digits of its one key, if nothing else changes; -1: see steps
}

// step is bytes that are copied, into which numbers are written, and then an argument of variable length.
type step struct {
	bytes   []byte
	numbers []number
	then    argument // with its "$LENGTH"; nil at the end
	isKey   bool     // then is the first key
	value   int      // instead of then, a value of this size, whose length is in bytes; -1: none
}

// number is a key's number in the bytes of a step.
type number struct {
	at   int
	kind partKind // keyPart, samePart or tagPart
	next bool     // another key than the one before it in the request
	bare bool     // digits without a hash tag, which are faster
}

// compiler makes a template of a request.
type compiler struct {
	style style
	vals  *values
	t     template
	last  step
	drawn int // {key}s so far
}

// compile encodes a request. Its first key decides the slot.
func compile(r request, s style, vals *values) template {
	c := compiler{
		style: s, vals: vals, t: template{replies: uint16(len(r.commands)), noSlot: true, plain: -1},
		last: step{value: -1},
	}
	for i, cmd := range r.commands {
		c.last.bytes = append(strconv.AppendInt(append(c.last.bytes, '*'), int64(len(cmd)), 10), '\r', '\n')
		isKey := map[int]bool{}
		for _, at := range r.keys[i] {
			isKey[at] = true
		}
		for at, a := range cmd {
			if isKey[at] && c.t.noSlot {
				c.firstKey(a)
			}
			c.argument(a, isKey[at])
		}
	}
	c.t.steps = append(c.t.steps, c.last)
	first := c.t.steps[0]
	valued := len(c.t.steps) == 2 && first.value >= 0 && string(c.last.bytes) == "\r\n"
	if n := first.numbers; (len(c.t.steps) == 1 || valued) && len(n) == 1 && n[0].bare && c.t.slots != nil &&
		len(r.commands) == 1 {
		c.t.plain = n[0].at
	}
	return c.t
}

// firstKey prepares the slot: from a table where only the number of the key changes.
func (c *compiler) firstKey(a argument) {
	c.t.noSlot = false
	if a.varying() > 0 {
		return
	}
	c.t.slots = newSlotTable(func(n uint64) []byte {
		var key []byte
		for _, p := range a {
			key = c.appendPart(key, p, n, true)
		}
		return key
	})
}

func (c *compiler) appendPart(dst []byte, p part, n uint64, isKey bool) []byte {
	if p.kind == literalPart {
		return append(dst, p.text...)
	}
	return c.style.appendNumber(dst, n, p.kind, isKey)
}

func (c *compiler) argument(a argument, isKey bool) {
	size, fixed := c.vals.fixed()
	switch {
	case a.is(valuePart) && fixed:
		c.last.bytes = appendLength(c.last.bytes, size)
		c.last.value = size
		c.endStep()
		c.last.bytes = append(c.last.bytes, '\r', '\n')
	case a.varying() > 0:
		c.last.then = c.marked(a, isKey)
		c.last.isKey = isKey && c.t.slots == nil && !c.hasVaryingKey()
		c.endStep()
	default:
		c.constant(a, isKey)
	}
}

func (c *compiler) hasVaryingKey() bool {
	for _, s := range c.t.steps {
		if s.isKey {
			return true
		}
	}
	return false
}

func (c *compiler) endStep() {
	c.t.steps = append(c.t.steps, c.last)
	c.last = step{value: -1}
}

// constant appends an argument of constant length.
func (c *compiler) constant(a argument, isKey bool) {
	var body []byte
	var numbers []number
	for _, p := range a {
		if p.kind != literalPart {
			numbers = append(numbers, number{at: len(body), kind: p.kind, next: c.isNext(p)})
		}
		body = c.appendPart(body, p, 0, isKey)
	}
	c.last.bytes = appendLength(c.last.bytes, len(body))
	for _, n := range numbers {
		n.bare = n.kind != tagPart && body[n.at] != '{'
		n.at += len(c.last.bytes)
		c.last.numbers = append(c.last.numbers, n)
	}
	c.last.bytes = append(append(c.last.bytes, body...), '\r', '\n')
}

// isNext: every {key} but the first of a request is another key.
func (c *compiler) isNext(p part) bool {
	if p.kind == keyPart || p.kind == samePart || p.kind == tagPart {
		c.t.hasKey = true
	}
	if p.kind != keyPart {
		return false
	}
	c.drawn++
	return c.drawn > 1
}

// marked notes in the parts of an argument of varying length what constant notes in numbers: times 1 moves on to
// another key, low 1 is a number in a key argument.
func (c *compiler) marked(a argument, isKey bool) argument {
	out := append(argument(nil), a...)
	for i, p := range a {
		if p.kind == literalPart || p.kind == randPart || p.kind == valuePart || p.kind == uniquePart ||
			p.kind == duePart {
			continue
		}
		out[i].times, out[i].low = 0, 0
		if c.isNext(p) {
			out[i].times = 1
		}
		if isKey {
			out[i].low = 1
		}
	}
	return out
}

func appendLength(dst []byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, '$'), int64(n), 10), '\r', '\n')
}

// appendPlain appends a request in which nothing but one number changes, and a value at its end if it has one.
func (t *template) appendPlain(dst []byte, s *Stream, op uint16, key uint64) ([]byte, Request) {
	at := len(dst) + t.plain
	dst = append(dst, t.steps[0].bytes...)
	putDigits(dst[at:], key)
	if size := t.steps[0].value; size >= 0 {
		dst = append(s.w.values.append(dst, key, size), '\r', '\n')
	}
	r := Request{Op: op, Replies: 1, Slot: -1, Key: int64(key)}
	if !s.slotless {
		p := pairsOf(key)
		r.Slot = t.slots.slot(&p)
	}
	return dst, r
}

// append appends a request for the drawn key.
func (t *template) append(dst []byte, s *Stream, op uint16, key uint64) ([]byte, Request) {
	r := Request{Op: op, Replies: t.replies, Slot: -1, Key: -1}
	var p pairs
	if t.hasKey {
		r.Key = int64(key)
		p = pairsOf(key)
	}
	if t.slots != nil && !s.slotless {
		r.Slot = t.slots.slot(&p)
	}
	current := key
	for i := range t.steps {
		st := &t.steps[i]
		at := len(dst)
		dst = append(dst, st.bytes...)
		for j := range st.numbers {
			n := &st.numbers[j]
			if n.next {
				current = s.w.neighbour(current)
				p = pairsOf(current)
			}
			if n.bare {
				p.putAll(dst[at+n.at:])
			} else {
				s.w.style.put(dst[at+n.at:], &p, n.kind)
			}
		}
		switch {
		case st.value >= 0:
			dst = s.w.values.append(dst, t.valueKey(s, current), st.value)
		case st.then != nil:
			var start int
			dst, start, current = st.then.append(dst, s, current)
			p = pairsOf(current)
			if st.isKey && !s.slotless {
				r.Slot = int16(cluster.Slot(dst[start : len(dst)-2]))
			}
		}
	}
	return dst, r
}

// valueKey is the key whose value is written: the one before it; without keys any.
func (t *template) valueKey(s *Stream, current uint64) uint64 {
	if t.hasKey {
		return current
	}
	return s.rng.next()
}
