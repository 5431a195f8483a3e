//go:build linux

package engine

// queue is a ring of connections with room, the longest idle first.
type queue struct {
	ring  []*conn
	head  int
	count int
}

func (q *queue) empty() bool { return q.count == 0 }

func (q *queue) put(c *conn) {
	if q.count == len(q.ring) {
		bigger := make([]*conn, max(64, 2*len(q.ring)))
		for i := range q.count {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.count)%len(q.ring)] = c
	q.count++
}

func (q *queue) take() *conn {
	c := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return c
}
