//go:build linux

package engine

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

// verdict is what the replies to a call say about sending it again.
type verdict uint8

const (
	fine      verdict = iota // it has ended
	elsewhere                // at once, to the node that was named
	afresh                   // after a pause, to whom the slot then belongs
)

// passing are the codes of errors that a call meets while a topology changes or a server starts, and that end by
// themselves.
var passing = map[string]bool{
	"TRYAGAIN":    true, // some keys of the request have moved, some have not
	"CLUSTERDOWN": true,
	"LOADING":     true,
	"READONLY":    true, // a master has become a replica
	"MASTERDOWN":  true, // a replica without its master
	"UNBLOCKED":   true, // a blocking call as its master became a replica
}

// judge looks at an error reply to the first call of c. It reports whether the call is to be sent again; then the error
// is none of the call's.
func (w *worker) judge(c *conn, line []byte) bool {
	r := &c.link.calls[c.head]
	code, _, _ := bytes.Cut(line, []byte(" "))
	redirect, isRedirect := cluster.Redirect{}, false
	if string(code) == "MOVED" || string(code) == "ASK" {
		redirect, isRedirect = cluster.ParseRedirect(&resp.ServerError{
			Code:    string(code),
			Message: string(bytes.TrimPrefix(line[len(code):], []byte(" "))),
		})
	}
	switch {
	case r.again != fine: // the rest of a MULTI block, of which nothing is executed
		return isRedirect || passing[string(code)] || string(code) == "EXECABORT"
	case isRedirect:
		r.again, r.asking, r.master = elsewhere, redirect.Ask, true
		r.node = w.r.router.redirected(redirect, c.link.node)
		if !redirect.Ask || r.node == none {
			r.node = none // by the slot, as it is known now
		}
		if !redirect.Ask {
			w.r.router.old()
		}
	case passing[string(code)]:
		r.again, r.asking, r.node = afresh, false, none
		r.master = r.master || string(code) == "READONLY"
		if string(code) != "TRYAGAIN" {
			w.r.router.old()
		}
	default:
		return false
	}
	r.tries++
	w.tally.Again[string(code)]++
	return true
}

// settle ends the first call of c, of which all replies are there, as far as routing goes. It reports true where the
// call is sent again, and then it has been taken off c.
func (w *worker) settle(c *conn) bool {
	l := c.link
	r := &l.calls[c.head]
	if r.again == fine {
		l.sent.drop(int(r.size))
		return false
	}
	k := call{flight: *c.first(), routed: *r, client: l.client}
	request := bytes.Clone(l.sent.first(int(r.size)))
	l.sent.drop(int(r.size))
	c.pop()
	if w.arrivals != nil {
		w.release(c)
	}
	if k.again == elsewhere && k.tries <= mostRedirects {
		if now := w.r.router.current.Load(); now != w.routing.routes {
			w.routing.routes = now // the slot's new node
			w.reroute()
		}
		w.place(k, request)
		return true
	}
	if k.again == elsewhere {
		k.node, k.asking = none, false
	}
	heap.Push(&w.routing.later, paused{at: w.now + int64(againAfter(int(k.tries))), call: k, request: request})
	return true
}

// mostRedirects are followed at once, as many as common clients do; nodes that go on pointing at each other are asked
// more slowly.
const mostRedirects = 5

// Pauses before a call is sent again: random between half and whole, longer each time.
const (
	firstAgain = 10 * time.Millisecond
	mostAgain  = 500 * time.Millisecond
)

func againAfter(tries int) time.Duration {
	pause := min(firstAgain<<min(tries, 10), mostAgain)
	return pause/2 + rand.N(pause/2)
}

// paused is a call that is to be sent again at a time of the clock.
type paused struct {
	at      int64
	call    call
	request []byte
}

// later is a heap of paused calls, the next first.
type later []paused

func (l later) Len() int           { return len(l) }
func (l later) Less(i, j int) bool { return l[i].at < l[j].at }
func (l later) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *later) Push(p any)        { *l = append(*l, p.(paused)) }
func (l *later) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
