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
	// answerTimeout bounds a dial and a reply: a node that is frozen is left alone after that.
	answerTimeout = 2 * time.Second
	// The time between attempts to reach a node that is down doubles from the first to the last, and is spread by half
	// of it.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// post is a node that is asked, with the connection to it. Its goroutine is the only one that uses the session; what
// the schedule keeps of it is below.
type post struct {
	id     string // of the node; empty until it has said so
	target target.Target
	asks   chan ask
	end    context.CancelFunc

	session *session.Session
	conn    atomic.Pointer[target.Conn] // of the session, to see whether it was closed
	last    [len(pulses)]uint64         // fingerprints
	known   [len(pulses)]bool           // that there is one
	early   answerTo                    // whether the node hears of moves at once

	// what the schedule knows
	primary  bool
	hears    answerTo // early, as it was answered
	busy     bool
	asked    bool      // has answered, if only with an error
	reserved int       // commands, for what it is asked now
	err      error     // of its last answer
	lost     bool      // the last attempt failed
	fails    int       // in a row
	next     time.Time // not to be asked before
	pulsed   time.Time // when it was asked for its pulse
	hurried  time.Time // when it was asked urgently
}

// answerTo is what is known of a yes-or-no question.
type answerTo int

const (
	notAsked answerTo = iota
	yes
	no
)

// ask is what a node is asked: a pulse, and the whole map only if that has changed; or the whole map at once; or what
// the pulses cost.
type ask struct {
	pulse  pulse
	survey bool
	weigh  bool
}

// answer is what came of an ask.
type answer struct {
	post  *post
	ask   ask
	view  *cluster.Map // nil if it is as before
	costs *costs
	early answerTo
	sent  int // commands
	at    time.Time
	err   error
}

// serve answers asks until ctx ends.
func (p *post) serve(ctx context.Context, answers chan<- answer) {
	defer p.hangUp()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-p.asks:
			a := p.answer(ctx, q)
			select {
			case answers <- a:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (p *post) answer(ctx context.Context, q ask) answer {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	a := answer{post: p, ask: q}
	a.err = p.reach(ctx, &a)
	switch {
	case a.err != nil:
	case q.weigh:
		var c costs
		var sent int
		c, sent, a.err = weigh(ctx, p.session)
		a.sent += sent
		a.costs = &c
	case q.survey:
		a.err = p.survey(ctx, &a)
	default:
		a.err = p.feel(ctx, q.pulse, &a)
	}
	a.at, a.early = time.Now(), p.early
	if a.err != nil && broken(a.err) {
		p.hangUp()
	}
	return a
}

// reach connects if there is no connection.
func (p *post) reach(ctx context.Context, a *answer) error {
	if p.session != nil && !p.hungUp() {
		return nil
	}
	p.hangUp()
	s, _, err := session.Open(ctx, p.target, clientName)
	var unreached *target.Error
	if !errors.As(err, &unreached) {
		a.sent += 2 // AUTH or HELLO, CLIENT SETNAME
	}
	if err != nil {
		return err
	}
	p.session, p.known = s, [len(pulses)]bool{}
	p.conn.Store(s.Conn())
	if p.early == notAsked {
		p.early = hearsEarly(ctx, s)
		a.sent++
	}
	return nil
}

// hearsEarly asks whether the node is of those that tell all others at once when a slot has arrived,
// clusterBroadcastPong in CLUSTER SETSLOT: Redis 6.2 and later do, and know CLIENT INFO; 6.0 and before leave it to
// gossip, which takes seconds.
func hearsEarly(ctx context.Context, s *session.Session) answerTo {
	_, err := s.Do(ctx, "CLIENT", "INFO")
	var refusal *resp.ServerError
	switch {
	case err == nil:
		return yes
	case !errors.As(err, &refusal):
		return notAsked
	case refusal.Code == "NOPERM" && strings.Contains(strings.ToLower(refusal.Message), "client|info"):
		return yes // since 7.0 a refusal names the subcommand
	case refusal.Code == "ERR", refusal.Code == "NOPERM":
		return no
	}
	return notAsked // such as LOADING
}

// hungUp reports whether the other end has closed the connection.
func (p *post) hungUp() bool {
	c := p.conn.Load()
	if c == nil {
		return true
	}
	info, err := c.TCPInfo()
	return err == nil && info.State != "ESTABLISHED"
}

func (p *post) hangUp() {
	if p.session != nil {
		p.session.Close()
	}
	p.session = nil
	p.conn.Store(nil)
}

// feel takes the pulse, and the whole map if it has changed.
func (p *post) feel(ctx context.Context, by pulse, a *answer) error {
	reply, err := p.session.Do(ctx, pulses[by].args...)
	a.sent++
	if err != nil {
		return err
	}
	print := by.fingerprint(reply)
	if p.known[by] && p.last[by] == print {
		return nil
	}
	p.known[by], p.last[by] = true, print
	if by == byNodes {
		return p.read(reply, a)
	}
	return p.survey(ctx, a)
}

// survey gets the whole map.
func (p *post) survey(ctx context.Context, a *answer) error {
	reply, err := p.session.Do(ctx, "CLUSTER", "NODES")
	a.sent++
	if err != nil {
		return err
	}
	return p.read(reply, a)
}

func (p *post) read(reply resp.Value, a *answer) error {
	m, err := cluster.ParseNodes(reply.Text())
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(p.target.Addr())
	if p.target.Network == "unix" {
		host = target.DefaultHost
	}
	m.FillHosts(host)
	a.view = &m
	return nil
}

// broken tells errors of the connection from refusals, after which it can be used.
func broken(err error) bool {
	var refusal *resp.ServerError
	return !errors.As(err, &refusal) && !errors.Is(err, cluster.ErrMalformed) && !errors.Is(err, cluster.ErrTooLarge)
}

// retry is when to try again after so many failures in a row.
func retry(fails int) time.Duration {
	d := lastRetry
	if fails < 7 {
		d = min(firstRetry<<fails, lastRetry)
	}
	return d/2 + rand.N(d)
}
