// Package probe is the source that makes a few calls itself, at a steady rate, and times their phases, as a caller on
// this host sees the server.
//
// The schedule is absolute: call k is due in the k-th slot whether or not the calls before it have come back, and its
// time counts from when it was due. A stall of one second at 50 calls per second is therefore 50 slow calls and not one
// (coordinated omission). Of those that were missed only the last few are still sent. Within its slot the time is
// random, so that the probe does not keep step with a period of the server.
package probe

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Defaults. The server spends about 15 µs on a call of a kept connection, so that 50 per second cost it less than
// 0.1 %.
const (
	DefaultRate      = 50 // calls per second on the kept connection
	DefaultFreshRate = 2  // connections per second
	DefaultSlow      = 5 * time.Millisecond
	maxFresh         = 16 // fresh connections in flight
	reconnectPause   = 200 * time.Millisecond
	// callTimeout is long: that a server does not answer is what is measured, and the end of the watch bounds it
	callTimeout = 10 * time.Minute
)

// Unfinished is the call.error of a call that had not come back when the watch ended.
const Unfinished = "unfinished when the watch ended"

// Kinds of connections, the values of call.conn.
const (
	Kept  = "kept"
	Fresh = "fresh"
)

// Options of a probe of one server.
type Options struct {
	Target    target.Target
	Node      string // subject of what is recorded
	Clock     *clock.Real
	Sink      recording.Sink
	Rate      float64       // calls per second on one kept connection; 0: none
	FreshRate float64       // connections per second, each opened, used once and closed; 0: none
	Slow      time.Duration // calls of at least this get a TCP_INFO event
	HashTag   string        // cluster: keys carry this tag, so that they belong to the node
	PingOnly  bool          // the node serves no key: a replica of a cluster
	Pace      *clock.Pace   // both rates are divided by it
	// Steps, if any, are made one after the other in each slot, instead of one call: a cycle. See StepAuth and so on.
	Steps []string
	// Beside are asked while a cycle runs.
	Beside []Echo
	// OnCycle, if set, is called for each cycle, within a second or so of its end.
	OnCycle func(Cycle)
	// OnCall, if set, is called for each call, with its time from when it was due, less that in which this process
	// itself was late.
	OnCall func(c recording.Call, felt time.Duration)
	// OnMissed, if set, is called for calls that were due and not sent, with the reason.
	OnMissed func(why string, calls int64)
	// OnPhases, if set, is called with the phases of each fresh connection: dns, connect, tls, handshake, command. A
	// phase that did not take place is 0.
	OnPhases func(map[string]time.Duration)
}

// Watch probes until ctx ends. Calls that have not come back by then are recorded as unfinished. Errors of the
// server are recorded; an error of Watch is one of this host, which has no timer left.
func Watch(ctx context.Context, o Options) error {
	if o.Slow == 0 {
		o.Slow = DefaultSlow
	}
	p := &prober{
		Options: o, hists: newHistograms(o.Sink, o.Node), writtenKey: randomKey(o.HashTag),
		ended: make(chan endedCycle, waitingCycles*min(len(o.Steps), 1)),
	}
	var wg, reporting sync.WaitGroup
	reporting.Go(p.passOn)
	var keepErr, freshErr error
	if o.Rate > 0 {
		wg.Go(func() { keepErr = p.keep(ctx) })
	}
	if o.FreshRate > 0 {
		wg.Go(func() { freshErr = p.fresh(ctx) })
	}
	wg.Wait()
	p.removeWritten(context.WithoutCancel(ctx))
	close(p.ended)
	reporting.Wait()
	p.hists.flush()
	p.sayMissed()
	return errors.Join(keepErr, freshErr)
}

type prober struct {
	Options
	hists  *histograms
	served bool         // a GET was answered without an error
	notRun atomic.Int64 // calls of MissedOwn

	writtenKey string // of StepSet
	ended      chan endedCycle
}

// command alternates between a command that touches no data and one that reads a key which does not exist.
func (p *prober) command(k int64) []string {
	if k%2 == 0 || p.PingOnly {
		return []string{"PING"}
	}
	return []string{"GET", randomKey(p.HashTag)}
}

// randomKey is a key of slowpath's own that does not exist.
func randomKey(hashTag string) string {
	key := "slowpath:probe:" + strconv.FormatUint(rand.Uint64(), 36)
	if hashTag != "" {
		key = "{" + hashTag + "}" + key
	}
	return key
}

// slots gives the due times of an absolute schedule: one random time in each slot of 1/rate.
type slots struct {
	startNs, widthNs int64
	k                int64
	pace             *clock.Pace // one slot in so many is used
	used             int64

	askedNs int64   // width of the slots as it was asked for
	trips   []int64 // the last calls, from their sends to their replies, in nanoseconds
}

func newSlots(startNs int64, perSecond float64, pace *clock.Pace) *slots {
	width := int64(float64(time.Second) / perSecond)
	return &slots{startNs: startNs, widthNs: width, askedNs: width, pace: pace}
}

// By the median of so many calls, at least and at most, it is known how long a round trip takes: single stalls change
// nothing.
const (
	firstTrips = 3
	lastTrips  = 9
)

// leaveRoom makes the slots twice as wide as a round trip, where they are narrower: the calls of a connection over a
// long path would wait for one another, and for nothing else. The last call took tripNs.
func (s *slots) leaveRoom(nowNs, tripNs int64) {
	s.trips = append(s.trips, tripNs)
	if len(s.trips) < firstTrips {
		return
	}
	s.trips = s.trips[max(len(s.trips)-lastTrips, 0):]
	width := max(s.askedNs, 2*stats.MedianUpper(slices.Sorted(slices.Values(s.trips))))
	if 4*max(width, s.widthNs) > 5*min(width, s.widthNs) {
		s.startNs, s.widthNs, s.k = nowNs, width, 0
	}
}

func (s *slots) next() due {
	d := due{s.used, s.startNs + s.k*s.widthNs + rand.N(s.widthNs)}
	s.k += s.pace.Times()
	s.used++
	return d
}

// due is a call that waits to be sent, and how many were before it.
type due struct {
	k    int64
	atNs int64
}

// errText is what goes into call.error: the code of an error reply, or what went wrong.
func errText(err error) string {
	var se *resp.ServerError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &se) && se.Code == "":
		return "error reply" // without a code, as proxies give it
	case errors.As(err, &se):
		return se.Code
	default:
		return err.Error()
	}
}

func (p *prober) errorEvent(atNs int64, phase string, err error) {
	d := recording.ErrorDetail{Phase: phase, Message: err.Error()}
	var se *resp.ServerError
	if errors.As(err, &se) {
		d.Code = se.Code
	}
	p.Sink.Event(recording.Event{
		TimeNs: atNs, Source: recording.SourceProbe, Subject: p.Node,
		Kind: recording.KindError, Detail: recording.Detail(d),
	})
}

// open makes a connection and logs in.
func (p *prober) open(ctx context.Context) (*session.Session, session.Opening, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, o, err := session.Open(ctx, p.Target, "slowpath")
	if s != nil && p.writes() {
		s.PermitWrites()
	}
	return s, o, err
}
