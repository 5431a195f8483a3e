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

// ClientName is the name of the watch's own connection, by which its commands are recognised in SLOWLOG and
// CLIENT LIST.
const ClientName = "slowpath-watch"

// Options of a watch.
type Options struct {
	Target target.Target
	Node   string // subject of all that is written
	Clock  clock.Clock
	Sink   recording.Sink
	Every  time.Duration  // between polls, at least; 0 is a second
	Pace   *clock.Pace    // at which they are made
	Listed func([]Client) // called with each CLIENT LIST; nil: nobody wants to know
	Load   func(float64)  // called with each poll: commands per second, slowpath's too; nil: nobody wants to know
	Budget float64        // share of the server's time that the watch may use; 0 is 0.001
}

const (
	pollTimeout     = 5 * time.Second // so long a hang is still seen as a slow poll, on the same connection
	lastPollTimeout = 2 * time.Second // from the end of the context to the end of Watch
	firstBackoff    = 100 * time.Millisecond
	longestBackoff  = 2 * time.Second
	// maxBrokenPolls is after how many connections that were closed at their first poll the watch gives up.
	maxBrokenPolls = 3
)

// watch is the state of one Watch.
type watch struct {
	Options
	session *session.Session

	samples  sampler // of INFO
	self     sampler // about the watch
	changes  changes
	logs     []*logReader // SLOWLOG is the first
	latency  latencyReader
	clock    serverClock
	budget   budget
	cost     *ownCost
	refusals refusals
	extras   extras
	slots    slots

	in        info   // of the last poll
	text      string // of the last "info" snapshot
	polls     int    // that were answered
	broken    int    // connections in a row that were closed before they answered a poll
	lastError string // the last error that was recorded, so that a long outage is not recorded at each attempt
}

// Watch asks a server about itself until the context ends, then a last time (within two seconds), so that counters
// reach the end of the watch. It returns nil then. It survives a server that hangs, restarts, loads its data or goes
// away. It fails only where trying again cannot help: the first connection is refused for its password, its
// certificate, or because the peer is not Redis.
func Watch(ctx context.Context, o Options) error {
	w := newWatch(o)
	// of commands: they may outlive ctx by lastPollTimeout
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastPollTimeout, cancel) })()

	next, backoff := w.Clock.Now(), firstBackoff
	for ctx.Err() == nil {
		if err := w.connect(ctx); err != nil {
			if w.polls == 0 && isFinal(err) {
				return err
			}
			sleep(ctx, backoff)
			backoff = min(2*backoff, longestBackoff)
			continue
		}
		if w.poll(life, false) {
			backoff = firstBackoff
		} else if w.hasGivenUp() {
			w.giveUp(ctx)
			break
		}
		next = max(next+int64(w.interval()), w.Clock.Now())
		sleep(ctx, time.Duration(next-w.Clock.Now()))
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
	for _, of := range append([]commandLog{slowlog}, commandLogs...) {
		w.logs = append(w.logs, &logReader{
			of: of, sink: o.Sink, subject: o.Node, clock: &w.clock, own: w.isOwn, startNs: now,
		})
	}
	w.latency = latencyReader{sink: o.Sink, subject: o.Node, clock: &w.clock, startNs: now}
	w.refusals = refusals{refused: map[string]bool{}, grant: o.Target.Grant, emit: func(b recording.BlindSpot) {
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
		w.reportError(phaseOf(opening, err), err)
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

// isFinal recognises the errors of a first connection that the next one would have, too.
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

// reportError records an error, unless it is the same as the last one.
func (w *watch) reportError(phase string, err error) {
	detail := recording.ErrorDetail{Phase: phase, Message: clip(err.Error())}
	var reply *resp.ServerError
	if errors.As(err, &reply) {
		detail.Code = reply.Code
	}
	if text := recording.Detail(detail); text != w.lastError {
		w.lastError = text
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

// isOwn recognises the entries of the server's logs that the watch caused itself.
func (w *watch) isOwn(e logEntry) bool {
	return e.name == ClientName || w.session != nil && e.client != "" && e.client == w.session.LocalAddr()
}

func (w *watch) hasGivenUp() bool { return w.polls == 0 && w.broken >= maxBrokenPolls }

// giveUp waits for the end: this peer closes the connection at each command.
func (w *watch) giveUp(ctx context.Context) {
	w.refusals.skip("INFO", "the connection was closed each time it was asked", "name the address of the server "+
		"itself, not of a proxy")
	<-ctx.Done()
}

// finish asks a last time.
func (w *watch) finish(life context.Context) {
	if !w.hasGivenUp() && w.connect(life) == nil {
		w.poll(life, true)
	}
	if w.session != nil {
		w.session.Close()
	}
	w.selfSamples(w.Clock.Now(), true)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
