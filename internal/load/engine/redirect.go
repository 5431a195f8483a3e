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

// retry says whether a call is sent again.
type retry uint8

const (
	noRetry     retry = iota // the call has ended
	retryAtNode              // at once, to the node that the redirect names
	retryLater               // after a pause, to the node that then has the slot
)

// transientErrors are codes of errors while a topology changes or a server starts.
var transientErrors = map[string]bool{
	"TRYAGAIN":    true, // some keys of the request have moved, some have not
	"CLUSTERDOWN": true,
	"LOADING":     true,
	"READONLY":    true, // a master has become a replica
	"MASTERDOWN":  true, // a replica without its master
	"UNBLOCKED":   true, // a blocking call as its master became a replica
}

// needsRetry: after this error reply to the first call of c the call is sent again. Then the error does not count.
func (w *worker) needsRetry(c *conn, line []byte) bool {
	r := &c.routed.calls[c.head]
	code, _, _ := bytes.Cut(line, []byte(" "))
	redirect, isRedirect := cluster.Redirect{}, false
	if string(code) == "MOVED" || string(code) == "ASK" {
		redirect, isRedirect = cluster.ParseRedirect(&resp.ServerError{
			Code:    string(code),
			Message: string(bytes.TrimPrefix(line[len(code):], []byte(" "))),
		})
	}
	switch {
	case r.retry != noRetry: // the rest of a MULTI block, which is not executed
		return isRedirect || transientErrors[string(code)] || string(code) == "EXECABORT"
	case isRedirect:
		r.retry, r.asking, r.master = retryAtNode, redirect.Ask, true
		r.node = w.r.router.redirected(redirect, c.routed.node)
		if !redirect.Ask || r.node == none {
			r.node = none // by the slot in the routes
		}
		if !redirect.Ask {
			w.r.router.markStale()
		}
	case transientErrors[string(code)]:
		r.retry, r.asking, r.node = retryLater, false, none
		r.master = r.master || string(code) == "READONLY"
		if string(code) != "TRYAGAIN" {
			w.r.router.markStale()
		}
	default:
		return false
	}
	r.tries++
	w.tally.Retried[string(code)]++
	return true
}

// finishRouted ends the first call of c, whose replies are complete. True: the call is sent again, and was removed from
// c.
func (w *worker) finishRouted(c *conn) bool {
	l := c.routed
	r := &l.calls[c.head]
	if r.retry == noRetry {
		l.sent.drop(int(r.size))
		return false
	}
	k := call{inflightCall: *c.first(), routed: *r, client: l.client}
	request := bytes.Clone(l.sent.first(int(r.size)))
	l.sent.drop(int(r.size))
	c.pop()
	if w.arrivals != nil {
		w.release(c)
	}
	if k.retry == retryAtNode && k.tries <= maxRedirects {
		if now := w.r.router.current.Load(); now != w.routing.routes {
			w.routing.routes = now // with the slot's new node
			w.reroute()
		}
		w.place(k, request)
		return true
	}
	if k.retry == retryAtNode {
		k.node, k.asking = none, false
	}
	heap.Push(&w.routing.retries, delayedCall{at: w.now + int64(retryPause(int(k.tries))), call: k, request: request})
	return true
}

// maxRedirects are followed at once, as many as common clients follow; further ones after a pause.
const maxRedirects = 5

// Pauses before a call is sent again: random, 50 to 100 %, longer each time.
const (
	minRetryPause = 10 * time.Millisecond
	maxRetryPause = 500 * time.Millisecond
)

func retryPause(tries int) time.Duration {
	pause := min(minRetryPause<<min(tries, 10), maxRetryPause)
	return pause/2 + rand.N(pause/2)
}

// delayedCall is a call that is sent again at a time of the clock.
type delayedCall struct {
	at      int64
	call    call
	request []byte
}

// retryQueue is a heap of delayed calls, the next first.
type retryQueue []delayedCall

func (l retryQueue) Len() int           { return len(l) }
func (l retryQueue) Less(i, j int) bool { return l[i].at < l[j].at }
func (l retryQueue) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *retryQueue) Push(p any)        { *l = append(*l, p.(delayedCall)) }
func (l *retryQueue) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
