package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// The channels on which changes are published, as "slot host:port" and "ranges host:port"; proposed in valkey#298.
const (
	movedChannel    = "__cluster__:moved"
	failoverChannel = "__cluster__:failover"
)

const (
	// publishBatch messages are sent together, publishPause apart: at most 1000 per second. The cluster bus carries
	// each to every node.
	publishBatch = 50
	publishPause = 50 * time.Millisecond
	// publishTries is how many nodes are tried for one batch.
	publishTries = 3
)

// message is queued for publishing.
type message struct{ channel, text string }

// publisher publishes changes on a connection of its own. Its queue is bounded: it holds only the last owner of each
// slot, and of the ranges of each failover.
type publisher struct {
	wake chan struct{}
	name string

	mu      sync.Mutex
	order   []string           // keys of the queued messages
	waiting map[string]message // by slot or ranges
	at      []target.Target    // nodes to publish on, in order of preference
	sent    int
	err     error
}

func newPublisher(ctx context.Context, name string) *publisher {
	p := &publisher{wake: make(chan struct{}, 1), name: name, waiting: map[string]message{}}
	go p.run(ctx)
	return p
}

// add queues the messages of an event.
func (p *publisher) add(e Event, at []target.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.To == "":
		return
	case e.Kind == SlotMoved:
		for _, r := range e.Slots {
			for slot := int(r.From); slot <= int(r.To); slot++ {
				p.queue(message{movedChannel, strconv.Itoa(slot) + " " + e.To}, strconv.Itoa(slot))
			}
		}
	case e.Kind == FailoverEnded && e.From != e.To:
		ranges := cluster.FormatRanges(e.Slots)
		p.queue(message{failoverChannel, ranges + " " + e.To}, "failover "+ranges)
	default:
		return
	}
	p.at = at
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *publisher) queue(m message, key string) {
	if _, there := p.waiting[key]; !there {
		p.order = append(p.order, key)
	}
	p.waiting[key] = m
}

// run publishes queued messages until ctx ends.
func (p *publisher) run(ctx context.Context) {
	var s *session.Session
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for {
			batch, at := p.batch()
			if len(batch) == 0 {
				break
			}
			s = p.publish(ctx, s, batch, at)
			select {
			case <-ctx.Done():
				return
			case <-time.After(publishPause):
			}
		}
	}
}

func (p *publisher) batch() ([]message, []target.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(publishBatch, len(p.order))
	batch := make([]message, n)
	for i, key := range p.order[:n] {
		batch[i] = p.waiting[key]
		delete(p.waiting, key)
	}
	p.order = p.order[n:]
	return batch, p.at
}

// publish sends a batch, on the session or, where that fails, on a new one to another node. It returns the session for
// the next batch.
func (p *publisher) publish(ctx context.Context, s *session.Session, batch []message,
	at []target.Target,
) *session.Session {
	cmds := make([][]string, len(batch))
	for i, m := range batch {
		cmds[i] = []string{"PUBLISH", m.channel, m.text}
	}
	var last error
	for try := range publishTries {
		ctx, cancel := context.WithTimeout(ctx, responseTimeout)
		err := error(nil)
		if s == nil {
			s, _, err = session.Open(ctx, at[try%len(at)], p.name)
		}
		if err == nil {
			var replies []resp.Value
			replies, err = s.Pipeline(ctx, cmds)
			cmds = cmds[len(replies):]
			p.count(at[0], replies)
		}
		cancel()
		if err == nil {
			return s
		}
		if s != nil {
			s.Close()
		}
		s, last = nil, err
	}
	p.fail(fmt.Errorf("%d messages could not be published: %w", len(cmds), last))
	return nil
}

// count counts what was published, and keeps the error of a refused message.
func (p *publisher) count(t target.Target, replies []resp.Value) {
	for _, v := range replies {
		if err := v.Err(); err != nil {
			p.fail(fmt.Errorf("publishing is refused: %w; allow it: %s", err, t.Grant("+publish &__cluster__:*")))
			continue
		}
		p.mu.Lock()
		p.sent++
		p.mu.Unlock()
	}
}

func (p *publisher) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *publisher) takeError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.err
	p.err = nil
	return err
}

func (p *publisher) published() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}
