package watch

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

const (
	clientName = "slowpath-topology"
	// responseTimeout bounds a dial and a reply, so that a frozen node blocks nothing for longer.
	responseTimeout = 2 * time.Second
	// The time between attempts to reach a node that is down doubles from the first to the last, with a random part of
	// ±50 %.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// poller polls one node over a connection of its own. Only its goroutine uses the session; the fields below belong to
// the schedule.
type poller struct {
	id       string // of the node; empty until it is known
	target   target.Target
	requests chan request
	stop     context.CancelFunc

	session    *session.Session
	conn       atomic.Pointer[target.Conn] // of the session, to see whether it was closed
	last       [len(pollCommands)]uint64   // fingerprints
	hasLast    [len(pollCommands)]bool     // that there is one
	broadcasts tristate                    // whether the node broadcasts moved slots

	// Used by the schedule:
	primary        bool
	broadcastKnown tristate // broadcasts, of the last response
	busy           bool
	answered       bool      // at least once, even with an error
	reserved       int       // commands, for the current request
	err            error     // of the last response
	unreachable    bool      // the last attempt failed
	fails          int       // in a row
	reported       bool      // node-unreachable was emitted
	next           time.Time // no request before this
	polledAt       time.Time // last poll
	urgentAt       time.Time // last urgent request
}

// tristate is yes, no or not known.
type tristate int

const (
	unknown tristate = iota
	yes
	no
)

// request is a poll, which reads the whole map only if the reply has changed; or the whole map; or a measurement of
// what the poll commands cost.
type request struct {
	command pollCommand
	fullMap bool
	measure bool
}

// response is the result of a request.
type response struct {
	poller     *poller
	request    request
	view       *cluster.Map // nil if it is unchanged
	costs      *costs
	broadcasts tristate
	sent       int // commands
	at         time.Time
	err        error
}

// serve executes requests until ctx ends.
func (p *poller) serve(ctx context.Context, responses chan<- response) {
	defer p.hangUp()
	for {
		select {
		case <-ctx.Done():
			return
		case req := <-p.requests:
			r := p.respond(ctx, req)
			select {
			case responses <- r:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (p *poller) respond(ctx context.Context, req request) response {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	r := response{poller: p, request: req}
	r.err = p.ensureConn(ctx, &r)
	switch {
	case r.err != nil:
	case req.measure:
		var c costs
		var sent int
		c, sent, r.err = measureCosts(ctx, p.session)
		r.sent += sent
		r.costs = &c
	case req.fullMap:
		r.err = p.readMap(ctx, &r)
	default:
		r.err = p.poll(ctx, req.command, &r)
	}
	r.at, r.broadcasts = time.Now(), p.broadcasts
	if r.err != nil && broken(r.err) {
		p.hangUp()
	}
	return r
}

// ensureConn connects if there is no connection.
func (p *poller) ensureConn(ctx context.Context, r *response) error {
	if p.session != nil && !p.hungUp() {
		return nil
	}
	p.hangUp()
	s, _, err := session.Open(ctx, p.target, clientName)
	var unreached *target.Error
	if !errors.As(err, &unreached) {
		r.sent += 2 // AUTH or HELLO, CLIENT SETNAME
	}
	if err != nil {
		return err
	}
	p.session, p.hasLast = s, [len(pollCommands)]bool{}
	p.conn.Store(s.Conn())
	if p.broadcasts == unknown {
		p.broadcasts = broadcastsMoves(ctx, s)
		r.sent++
	}
	return nil
}

// broadcastsMoves finds out whether the node tells all others at once when it has received a slot
// (clusterBroadcastPong in CLUSTER SETSLOT). Redis 6.2 and later do, and they know CLIENT INFO; 6.0 and earlier leave
// it to gossip, which takes seconds.
func broadcastsMoves(ctx context.Context, s *session.Session) tristate {
	_, err := s.Do(ctx, "CLIENT", "INFO")
	var refusal *resp.ServerError
	switch {
	case err == nil:
		return yes
	case !errors.As(err, &refusal):
		return unknown
	case refusal.Code == "NOPERM" && strings.Contains(strings.ToLower(refusal.Message), "client|info"):
		return yes // from 7.0 the error names the subcommand
	case refusal.Code == "ERR", refusal.Code == "NOPERM":
		return no
	}
	return unknown // such as LOADING
}

// hungUp reports whether the other end has closed the connection.
func (p *poller) hungUp() bool {
	c := p.conn.Load()
	if c == nil {
		return true
	}
	info, err := c.TCPInfo()
	return err == nil && info.State != "ESTABLISHED"
}

func (p *poller) hangUp() {
	if p.session != nil {
		p.session.Close()
	}
	p.session = nil
	p.conn.Store(nil)
}

// poll sends the poll command, and reads the whole map if the reply has changed.
func (p *poller) poll(ctx context.Context, command pollCommand, r *response) error {
	reply, err := p.session.Do(ctx, pollCommands[command].args...)
	r.sent++
	if err != nil {
		return err
	}
	hash := command.fingerprint(reply)
	if p.hasLast[command] && p.last[command] == hash {
		return nil
	}
	p.hasLast[command], p.last[command] = true, hash
	if command == byNodes {
		return p.parseMap(reply, r)
	}
	return p.readMap(ctx, r)
}

// readMap reads the whole map.
func (p *poller) readMap(ctx context.Context, r *response) error {
	reply, err := p.session.Do(ctx, "CLUSTER", "NODES")
	r.sent++
	if err != nil {
		return err
	}
	return p.parseMap(reply, r)
}

func (p *poller) parseMap(reply resp.Value, r *response) error {
	m, err := cluster.ParseNodes(reply.Text())
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(p.target.Addr())
	if p.target.Network == "unix" {
		host = target.DefaultHost
	}
	m.FillHosts(host)
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.HasFlag("myself") && n.Addr() == "" { // it was reached here
			n.Host, n.Port = host, p.target.Port
		}
	}
	r.view = &m
	return nil
}

// broken reports whether an error leaves the connection unusable; error replies do not.
func broken(err error) bool {
	var refusal *resp.ServerError
	return !errors.As(err, &refusal) && !errors.Is(err, cluster.ErrMalformed) && !errors.Is(err, cluster.ErrTooLarge)
}

// retry is how long to wait after so many failures in a row.
func retry(fails int) time.Duration {
	d := lastRetry
	if fails < 7 {
		d = min(firstRetry<<fails, lastRetry)
	}
	return d/2 + rand.N(d)
}
