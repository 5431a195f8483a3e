package recording

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// ConnUse is how a connection was used from when it was first seen up to a time, by its client's end. Calls are those
// with a reply; commands that wait by design are none.
type ConnUse struct {
	TimeNs     int64 // since the Unix epoch
	Calls      int64
	InFlightNs int64 // time with a call in flight
	IdleNs     int64 // time from a reply to the next send, with none in flight
	// Prompt counts calls that were sent after the reply of the previous call, within a quarter of its time; -1 where
	// they were not counted.
	Prompt int64
	// Turns counts how often another thread used it than before; 0: only one did, or that was not seen.
	Turns int64
	// Handed counts the turns of a thread that slept through the whole call before, until the thread that made that
	// call woke it; of these are WaitedNs (their sleep), WaitedMaxNs (the longest) and KeptNs (from the last reply to
	// the wake-up).
	Handed      int64
	WaitedNs    int64
	WaitedMaxNs int64
	KeptNs      int64
	// Served is how many other threads were woken by those that read its replies; 0 where that was not seen.
	Served int64
	// IdleMaxNs is the longest part of IdleNs since the use before; -1 where that was not measured.
	IdleMaxNs int64
}

// usesOf holds the uses of the connections of one address as numbers of variable length, each as its difference to that
// of the use before: a watch of many connections has millions, and they hardly change.
type usesOf struct {
	packed []byte
	last   ConnUse
	mixed  bool // they are not in order of time
}

// numbers are all numbers of a use.
func (u *ConnUse) numbers() [12]*int64 {
	return [...]*int64{
		&u.TimeNs, &u.Calls, &u.InFlightNs, &u.IdleNs, &u.Prompt, &u.Turns, &u.Handed, &u.WaitedNs, &u.WaitedMaxNs,
		&u.KeptNs, &u.Served, &u.IdleMaxNs,
	}
}

func (p *usesOf) add(u ConnUse) {
	p.mixed = p.mixed || u.TimeNs < p.last.TimeNs
	before := p.last.numbers()
	for i, v := range u.numbers() {
		p.packed = binary.AppendVarint(p.packed, *v-*before[i])
	}
	p.last = u
}

// all are the uses as they were added.
func (p *usesOf) all(yield func(ConnUse) bool) {
	var u ConnUse
	numbers := u.numbers()
	for packed := p.packed; len(packed) > 0; {
		for _, v := range numbers {
			d, n := binary.Varint(packed)
			*v, packed = *v+d, packed[n:]
		}
		if !yield(u) {
			return
		}
	}
}

// sorted is the same in order of time.
func (p *usesOf) sorted() *usesOf {
	byTime := func(a, b ConnUse) int { return cmp.Compare(a.TimeNs, b.TimeNs) }
	out := &usesOf{}
	for _, u := range slices.SortedStableFunc(p.all, byTime) {
		out.add(u)
	}
	return out
}

// ConnUse implements Sink.
func (r *Recording) ConnUse(client string, u ConnUse) {
	p := r.conns[client]
	if p == nil {
		p = &usesOf{}
		r.conns[client] = p
	}
	p.add(u)
}

// ConnUses are the uses of the connections of a client's address, in order of time. Later connections use an address
// again.
func (r *Recording) ConnUses(client string) iter.Seq[ConnUse] {
	if p := r.conns[client]; p != nil {
		return p.all
	}
	return func(func(ConnUse) bool) {}
}

// LastConnUse is the last of ConnUses; false where there is none.
func (r *Recording) LastConnUse(client string) (u ConnUse, ok bool) {
	if p := r.conns[client]; p != nil {
		return p.last, true
	}
	return u, false
}

// UsedConns lists the clients' addresses of all connections whose use is known, sorted.
func (r *Recording) UsedConns() []string { return slices.Sorted(maps.Keys(r.conns)) }

// indexConns orders the uses. Up to version 3 of the schema each number was a sample of its own.
func (r *Recording) indexConns() {
	var old []string
	for k := range r.series {
		client, ok := strings.CutPrefix(k.Subject, ConnPrefix)
		if ok && k.Source == SourceTap && k.Name == "in_flight_ns" {
			old = append(old, client)
		}
	}
	for _, client := range old {
		r.usesOfSamples(client)
	}
	for client, p := range r.conns {
		if p.mixed {
			r.conns[client] = p.sorted()
		} else {
			p.packed = slices.Clone(p.packed) // it grew in steps: a part is not used
		}
	}
}

// usesOfSamples joins the samples of a connection.
func (r *Recording) usesOfSamples(client string) {
	series := func(name string) Series {
		key := seriesKey{SourceTap, ConnPrefix + client, name}
		defer delete(r.series, key)
		return r.series[key]
	}
	inFlight := series("in_flight_ns")
	uses := make([]ConnUse, len(inFlight))
	for i, p := range inFlight {
		uses[i] = ConnUse{TimeNs: p.TimeNs, InFlightNs: int64(p.Value), Prompt: -1, IdleMaxNs: -1}
	}
	fill := func(name string, set func(*ConnUse, int64)) {
		s := series(name)
		for i := range uses {
			if v, ok := s.At(uses[i].TimeNs); ok {
				set(&uses[i], int64(v))
			}
		}
	}
	fill("calls", func(u *ConnUse, v int64) { u.Calls = v })
	fill("idle_ns", func(u *ConnUse, v int64) { u.IdleNs = v })
	fill("prompt", func(u *ConnUse, v int64) { u.Prompt = v })
	fill("turns", func(u *ConnUse, v int64) { u.Turns = v })
	fill("handed", func(u *ConnUse, v int64) { u.Handed = v })
	fill("waited_ns", func(u *ConnUse, v int64) { u.WaitedNs = v })
	fill("waited_max_ns", func(u *ConnUse, v int64) { u.WaitedMaxNs = v })
	fill("kept_ns", func(u *ConnUse, v int64) { u.KeptNs = v })
	fill("served", func(u *ConnUse, v int64) { u.Served = v })
	for _, u := range uses {
		r.ConnUse(client, u)
	}
}

// ConnUse adds how a connection was used up to a time.
func (w *Writer) ConnUse(client string, u ConnUse) {
	w.put(connUseTable, []any{u.TimeNs, client, u.pack()})
}

// pack is the column numbers: all but the time, each of variable length. A watch of many connections has millions of
// rows, and SQLite takes as long for each column as for the rest of a row.
func (u *ConnUse) pack() []byte {
	packed := make([]byte, 0, 40) // about as many
	numbers := u.numbers()
	for _, v := range numbers[1:] {
		packed = binary.AppendVarint(packed, *v)
	}
	return packed
}

// unpack is its reverse; false where these are no such numbers. Early recordings of version 5 have no IdleMaxNs.
func (u *ConnUse) unpack(packed []byte) bool {
	u.IdleMaxNs = -1
	numbers := u.numbers()
	for i, v := range numbers[1:] {
		if len(packed) == 0 && i == len(numbers)-2 {
			return true
		}
		d, n := binary.Varint(packed)
		if n <= 0 {
			return false
		}
		*v, packed = d, packed[n:]
	}
	return len(packed) == 0
}

// valid reports whether a source can have written these numbers: -1 is one that was not counted.
func (u *ConnUse) valid() bool {
	numbers := u.numbers()
	for _, v := range numbers[1:] {
		if *v < -1 || *v > maxTimeNs {
			return false
		}
	}
	return true
}
