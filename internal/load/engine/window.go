//go:build linux

package engine

// window is the part of a byte stream that may be needed again: it grows at its end and shrinks at its start.
type window struct {
	b    []byte
	from int
}

func (w *window) add(p []byte) {
	if len(w.b)+len(p) > cap(w.b) && w.from >= len(w.b)/2 {
		// moves no more bytes than were dropped
		w.b, w.from = w.b[:copy(w.b, w.b[w.from:])], 0
	}
	w.b = append(w.b, p...)
}

// first gives the first n bytes, valid until the next add.
func (w *window) first(n int) []byte { return w.b[w.from : w.from+n] }

func (w *window) drop(n int) {
	w.from += n
	if w.from == len(w.b) {
		w.b, w.from = w.b[:0], 0
	}
}

// waiting is a queue of calls that cannot be sent yet, with their requests.
type waiting struct {
	calls    []call // a ring of a power of two
	head, n  int
	requests window
}

func (q *waiting) put(k call, request []byte) {
	if q.n == len(q.calls) {
		bigger := make([]call, max(16, 2*len(q.calls)))
		for i := range q.n {
			bigger[i] = q.calls[(q.head+i)&(len(q.calls)-1)]
		}
		q.calls, q.head = bigger, 0
	}
	k.size = int32(len(request))
	q.calls[(q.head+q.n)&(len(q.calls)-1)] = k
	q.n++
	q.requests.add(request)
}

// take gives the first call; its request is valid until the next put.
func (q *waiting) take() (call, []byte) {
	k := q.calls[q.head]
	q.head = (q.head + 1) & (len(q.calls) - 1)
	q.n--
	request := q.requests.first(int(k.size))
	q.requests.drop(int(k.size))
	return k, request
}
