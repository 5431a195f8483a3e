package server

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// ClientName is the name of the watch's own connection, by which its commands are told from others in SLOWLOG and
// CLIENT LIST.
const ClientName = "slowpath-watch"

// Options of a watch.
type Options struct {
	Target target.Target
	Node   string // subject of all that is written
	Clock  clock.Clock
	Sink   recording.Sink
	Every  time.Duration // between polls, at least; 0 is a second
	Budget float64       // share of the server's time that the watch may use; 0 is 0.001
}

const (
	pollTimeout     = 5 * time.Second // so long a hang is still seen as a slow poll, on the same connection
	lastPollTimeout = 2 * time.Second // from the end of the context to the end of Watch
	firstBackoff    = 100 * time.Millisecond
	longestBackoff  = 2 * time.Second
	// hopelessPolls is after how many connections that broke at their first poll none is tried any more.
	hopelessPolls = 3
)

// watch is the state of one Watch.
type watch struct {
	Options
	session *session.Session

	samples  sampler // of INFO
	self     sampler // about the watch
	changes  changes
	slowlog  slowlogReader
	latency  latencyReader
	clock    serverClock
	budget   budget
	cost     *ownCost
	refusals refusals
	extras   extras

	in      info   // of the last poll
	text    string // of the last "info" snapshot
	polls   int    // that were answered
	broken  int    // connections in a row that broke before they answered a poll
	trouble string // the last error told, so that a long outage is not told at each attempt
}

// Watch asks a server about itself until the context ends, then a last time (within two seconds), so that what is
// counted reaches the end. It returns nil then. It survives a server that hangs, restarts, loads its data or goes away.
// It fails only where trying again cannot help: the first connection is refused for its password, its certificate, or
// because the peer is no Redis.
func Watch(ctx context.Context, o Options) error {
	w := newWatch(o)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // of requests: they may outlive ctx a little
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastPollTimeout, cancel) })()

	next, backoff := time.Now(), firstBackoff
	for ctx.Err() == nil {
		if err := w.connect(ctx); err != nil {
			if w.polls == 0 && isFinal(err) {
				return err
			}
			sleep(ctx, time.Now().Add(backoff))
			backoff = min(2*backoff, longestBackoff)
			continue
		}
		if w.poll(life, false) {
			backoff = firstBackoff
		} else if w.isHopeless() {
			w.giveUp(ctx)
			break
		}
		if next = next.Add(w.interval()); next.Before(time.Now()) {
			next = time.Now()
		}
		sleep(ctx, next)
	}
	w.finish(life)
	return nil
}

func newWatch(o Options) *watch {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	now := o.Clock.Now()
	w := &watch{Options: o, cost: newOwnCost(), budget: budget{share: o.Budget, startNs: now}}
	w.samples = sampler{sink: o.Sink, subject: o.Node}
	w.self = sampler{sink: o.Sink, subject: o.Node}
	w.changes = changes{sink: o.Sink, subject: o.Node}
	w.slowlog = slowlogReader{sink: o.Sink, subject: o.Node, clock: &w.clock, own: w.isOwn, startNs: now}
	w.latency = latencyReader{sink: o.Sink, subject: o.Node, clock: &w.clock, startNs: now}
	w.refusals = refusals{refused: map[string]bool{}, emit: func(b recording.BlindSpot) {
		w.event(w.Clock.Now(), 0, recording.KindBlindSpot, b)
	}}
	return w
}

// connect opens a session if there is none.
func (w *watch) connect(ctx context.Context) error {
	if w.session != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	s, opening, err := session.Open(ctx, w.Target, ClientName)
	if err != nil {
		w.tell(phaseOf(opening, err), err)
		return err
	}
	w.session = s
	w.clock.remote = isRemote(s.LocalAddr(), s.RemoteAddr())
	return nil
}

func phaseOf(o session.Opening, err error) string {
	var dial *target.Error
	switch {
	case !errors.As(err, &dial):
		return "handshake"
	case o.TLS > 0:
		return "tls"
	}
	return "connect"
}

// isFinal tells the errors of a first connection that the next one would have too.
func isFinal(err error) bool {
	for _, final := range []error{
		session.ErrWrongPassword, session.ErrNoAuth, session.ErrProtected, resp.ErrProtocol,
		target.ErrBadTarget, target.ErrNameNotFound,
		target.ErrNotTLS, target.ErrUnknownAuthority, target.ErrHostname, target.ErrCertificate, target.ErrClientCert,
		target.ErrCertFile,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// tell writes an error event, unless it is the one that was told last.
func (w *watch) tell(phase string, err error) {
	detail := recording.ErrorDetail{Phase: phase, Message: clip(err.Error())}
	var reply *resp.ServerError
	if errors.As(err, &reply) {
		detail.Code = reply.Code
	}
	if text := recording.Detail(detail); text != w.trouble {
		w.trouble = text
		w.event(w.Clock.Now(), 0, recording.KindError, detail)
	}
}

func (w *watch) event(timeNs, durationNs int64, kind string, detail any) {
	w.Sink.Event(recording.Event{
		TimeNs: timeNs, DurationNs: durationNs, Source: source, Subject: w.Node, Kind: kind,
		Detail: recording.Detail(detail),
	})
}

func (w *watch) snapshot(timeNs int64, name, body string) {
	w.Sink.Snapshot(recording.Snapshot{TimeNs: timeNs, Source: source, Subject: w.Node, Name: name, Body: body})
}

// isOwn tells the entries of SLOWLOG that the watch caused itself.
func (w *watch) isOwn(e slowEntry) bool {
	return e.name == ClientName || w.session != nil && e.client != "" && e.client == w.session.LocalAddr()
}

func (w *watch) isHopeless() bool { return w.polls == 0 && w.broken >= hopelessPolls }

// giveUp waits for the end: this peer closes the connection whenever it is asked.
func (w *watch) giveUp(ctx context.Context) {
	w.refusals.skip("INFO", "the connection was closed each time it was asked", "name the address of the server "+
		"itself, not of a proxy")
	<-ctx.Done()
}

// finish asks a last time.
func (w *watch) finish(life context.Context) {
	if !w.isHopeless() && w.connect(life) == nil {
		w.poll(life, true)
	}
	if w.session != nil {
		w.session.Close()
	}
	w.selfSamples(w.Clock.Now(), true)
}

func sleep(ctx context.Context, until time.Time) {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
