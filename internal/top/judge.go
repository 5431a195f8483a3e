package top

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
)

// How often the last seconds are judged. Judging takes CPU time of this host: it may take a part of a core over time,
// and so much at once when an incident begins.
const (
	judgeFirst   = 5 * time.Second  // after the begin of the watch
	judgeEvery   = 5 * time.Second  // while there are new slow calls
	judgeCalm    = 20 * time.Second // while there are none
	judgeShare   = 0.004            // of a core
	judgeAtOnce  = 2 * time.Second  // of CPU time
	judgeLooking = 500 * time.Millisecond
)

// Judge makes verdicts of the last seconds of a watch, in the background.
type Judge struct {
	Window  *live.Window
	Clock   clock.Clock
	Version string
	// Slow counts slow calls so far: whether something has happened since the last verdict.
	Slow func() uint64
	// Publish is given each verdict, and the accounts that it was made of.
	Publish func(Verdict, *account.Ledger)

	asked  chan struct{}
	began  int64         // nanoseconds since the epoch
	last   int64         // the end of the last verdict; 0: none
	slow   uint64        // slow calls that it knew
	left   time.Duration // CPU time that may be used now
	topped int64         // when left was last added to
}

// NewJudge makes one that has not judged yet.
func NewJudge(w *live.Window, c clock.Clock, version string, slow func() uint64,
	publish func(Verdict, *account.Ledger),
) *Judge {
	now := c.Now()
	return &Judge{
		Window: w, Clock: c, Version: version, Slow: slow, Publish: publish, asked: make(chan struct{}, 1),
		began: now, topped: now, left: judgeAtOnce,
	}
}

// Ask has the last seconds judged now, whatever that takes.
func (j *Judge) Ask() {
	select {
	case j.asked <- struct{}{}:
	default:
	}
}

// Run judges until ctx ends.
func (j *Judge) Run(ctx context.Context) {
	tick := time.NewTicker(judgeLooking)
	defer tick.Stop()
	for {
		wanted := false
		select {
		case <-ctx.Done():
			return
		case <-j.asked:
			wanted = true
		case <-tick.C:
		}
		if slow := j.Slow(); wanted || j.due(j.Clock.Now(), slow) {
			j.slow = slow
			v, ledger, ok := j.judge()
			if !ok {
				continue
			}
			j.left -= v.Took
			j.last = j.Clock.Now()
			j.Publish(v, ledger)
		}
	}
}

// due reports whether it is time for another verdict.
func (j *Judge) due(now int64, slow uint64) bool {
	j.left = min(judgeAtOnce, j.left+time.Duration(judgeShare*float64(now-j.topped)))
	j.topped = now
	switch since := time.Duration(now - j.last); {
	case j.last == 0:
		return now-j.began >= int64(judgeFirst)
	case j.left <= 0:
		return false
	case slow != j.slow:
		return since >= judgeEvery
	default:
		return since >= judgeCalm
	}
}

// judge judges the last seconds on a thread of low priority: the sources measure with theirs.
func (j *Judge) judge() (v Verdict, l *account.Ledger, ok bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		took := lowPriority()
		defer func() {
			if failed := recover(); failed != nil { // the numbers go on
				v, l, ok = Verdict{At: timeOf(j.Clock.Now()), Took: took(), Failed: fmt.Sprint(failed)}, nil, true
			}
		}()
		rec, begun := j.Window.Recording()
		if !begun {
			return
		}
		c := facts.New(rec)
		d := verdict.Of(c, j.Version)
		from, to := rec.Window()
		v, l, ok = Verdict{Diagnosis: d, At: timeOf(to), Of: time.Duration(to - from), Took: took()}, c.Ledger, true
	}()
	<-done
	return v, l, ok
}
