//go:build linux

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/workload"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// subscribers are connections that receive what the workload publishes, each with a goroutine. They count in the tally
// of the first worker.
type subscribers struct {
	r    *run
	wg   sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex
	conns  []*target.Conn // by subscriber; nil while it is not connected
	counts delivery
}

// delivery is what subscribers counted.
type delivery struct {
	messages, bytes   int64
	lost, reconnected int64
	errors            map[string]int64
	took              *hdrhistogram.Histogram // from when the call was due, ns; nil before the first
}

// subscribe starts Options.Subscribers; all of them are subscribed when it returns.
func (r *run) subscribe(ctx context.Context) error {
	if r.Subscribers == 0 {
		return nil
	}
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &subscribers{
		r: r, stop: stop, conns: make([]*target.Conn, r.Subscribers),
		counts: delivery{errors: map[string]int64{}},
	}
	r.subscribers = s
	for i := range r.Subscribers {
		c, err := s.open(ctx, i)
		if err != nil {
			s.close()
			return err
		}
		s.wg.Go(func() { s.listen(stopped, i, c) })
	}
	return nil
}

var errNothingPublished = fmt.Errorf("%w: subscribers, and a workload that publishes nothing: add --command publish",
	ErrOptions)

// open connects and subscribes.
func (s *subscribers) open(ctx context.Context, i int) (*target.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.r.DialTimeout)
	defer cancel()
	session, _, err := session.Open(ctx, s.r.Target, clientName)
	if err != nil {
		return nil, err
	}
	c := session.Detach()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline) // fails on a closed connection only: then the write fails, too
	patterns := s.r.Workload.Channels
	if _, err = c.Write(resp.AppendCommand(nil, append([]string{"PSUBSCRIBE"}, patterns...)...)); err == nil {
		err = confirmed(c, len(patterns))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[i] = c
	return c, nil
}

// confirmed reads the replies to PSUBSCRIBE byte by byte, so that it does not read the first message.
func confirmed(c *target.Conn, replies int) error {
	var scan scanner
	var b []byte
	for replies > 0 {
		b = append(b, 0)
		if _, err := c.Read(b[len(b)-1:]); err != nil {
			return err
		}
		n, done, err := scan.next(b)
		if err != nil {
			return err
		}
		b = b[n:]
		if done && scan.line != nil {
			return explainReply(scan.line)
		}
		if done {
			replies--
		}
	}
	return nil
}

// explainReply is the error of an error reply.
func explainReply(line []byte) error { return resp.Value{Kind: resp.Error, Str: line}.Err() }

// listen counts messages until the end of the load, and reconnects.
func (s *subscribers) listen(ctx context.Context, i int, c *target.Conn) {
	for attempt := 0; ; attempt++ {
		if c != nil {
			attempt = 0
			err := s.messages(c)
			c.Close()
			if ctx.Err() != nil {
				return
			}
			s.ended(i, err)
		}
		select {
		case <-time.After(pauseAfter(attempt)):
		case <-ctx.Done():
			return
		}
		var err error
		if c, err = s.open(ctx, i); ctx.Err() != nil {
			if c != nil {
				c.Close()
			}
			return
		}
		s.opened(err)
	}
}

// messages counts messages until the connection ends, or answers the PING of waitForMessages.
func (s *subscribers) messages(c *target.Conn) error {
	scan := scanner{keep: true}
	b := make([]byte, bufferBytes)
	for kept := 0; ; {
		n, err := c.Read(b[kept:])
		if err != nil && n == 0 {
			return err
		}
		now := s.r.Clock.Now()
		var messages int64
		rest, ponged := b[:kept+n], false
		for len(rest) > 0 && err == nil && !ponged {
			var used int
			var done bool
			used, done, err = scan.next(rest)
			used = scan.whole(rest, used, done)
			rest = rest[used:]
			if err != nil || !done {
				break
			}
			if scan.reply[1] == messageElements {
				messages++
				s.delivered(payload(scan.reply), now)
			} else {
				ponged = true
			}
		}
		s.count(messages, int64(n))
		if ponged {
			return errAllReceived
		}
		if err != nil {
			return err
		}
		if kept = copy(b, rest); kept == len(b) {
			b = append(b, make([]byte, len(b))...)
		}
	}
}

// messageElements: pmessage, the pattern, the channel, the payload.
const messageElements = '4'

// payload is the last element of a message: what follows the header of the last of four blobs.
func payload(message []byte) []byte {
	rest := message
	for range messageElements - '0' {
		_, after, _ := bytes.Cut(rest, crlf) // the header of the message, or the blob before
		header, body, found := bytes.Cut(after, crlf)
		if !found || len(header) < 2 {
			return nil
		}
		size, err := number(header, maxBulk)
		if err != nil || size < 0 || size > len(body) {
			return nil
		}
		rest = body[size:]
		message = body[:size]
	}
	return message
}

// errAllReceived: a subscriber has received all messages that were published before the PING.
var errAllReceived = errors.New("all messages received")

// delivered records the delivery time of a message that has the time when its call was due.
func (s *subscribers) delivered(message []byte, now int64) {
	due, ok := workload.DueOf(message)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts.took == nil {
		s.counts.took = NewHistogram()
	}
	_ = s.counts.took.RecordValue(min(max(now-due, 0), maxLatency)) // in range
}

func (s *subscribers) count(messages, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.messages += messages
	s.counts.bytes += bytes
}

// ended counts the end of a connection.
func (s *subscribers) ended(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[i] = nil
	s.counts.lost++
	countKind(s.counts.errors, errorKind(err), 1)
}

// opened counts an attempt to connect again.
func (s *subscribers) opened(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		countKind(s.counts.errors, errorKind(err), 1)
		return
	}
	s.counts.reconnected++
}

// addTo moves the counts into a tally.
func (s *subscribers) addTo(t *Tally) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.counts
	t.Delivered += d.messages
	t.DeliveredBytes += d.bytes
	mergeInto(&t.Delivery, d.took)
	t.Lost += d.lost
	t.Reconnected += d.reconnected
	addKinds(t.ConnErrors, d.errors)
	clear(d.errors)
	*d = delivery{errors: d.errors}
}

// waitForMessages waits until the subscribers have received all messages, at most for Drain, and ends them.
func (s *subscribers) waitForMessages() {
	if s == nil {
		return
	}
	s.stop()
	s.mu.Lock()
	for _, c := range s.conns {
		if c != nil {
			_ = c.SetDeadline(time.Now().Add(s.r.Drain))
			_, _ = c.Write(resp.AppendCommand(nil, "PING")) // an error also shows in the read
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// close ends the subscribers at once.
func (s *subscribers) close() {
	if s == nil {
		return
	}
	s.stop()
	s.mu.Lock()
	for _, c := range s.conns {
		if c != nil {
			_ = c.SetDeadline(time.Unix(1, 0))
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
}
