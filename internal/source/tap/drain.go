//go:build linux

package tap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
)

// reports is the ring buffer of the programs.
type reports interface {
	AvailableBytes() int
	SetDeadline(time.Time)
	ReadInto(*ringbuf.Record) error
	Close() error
}

// endOfWatch is later than all times of a recording: what waits for another event does so no more.
const endOfWatch = 1 << 62

// Run passes on what the programs see until ctx ends.
func (t *Tap) Run(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close() //nolint:errcheck // a timer
	t.begin()
	for {
		more, err := t.pass()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return t.finish()
		}
		if !more {
			alarm.Sleep(t.DrainEvery)
		}
	}
}

// begin is before the first pass.
func (t *Tap) begin() {
	t.counted = t.Clock.Now()
	t.told = t.counted
}

// pass takes what has come by now, and does what is due. It reports whether more may have come already.
func (t *Tap) pass() (more bool, err error) {
	if more, err = t.drain(drainBytes); err != nil {
		return false, err
	}
	t.snapshot()
	t.followRestarts()
	now := t.Clock.Now()
	t.recorder.settle(now)
	if now/1e9 > t.counted/1e9 && now-t.counted >= int64(leastCounted) {
		t.count()
		t.endHookCost()
		t.sampleConns()
		t.holdGoBudget()
		t.counted = now
	}
	if now-t.ends.checked >= endsEvery {
		t.forgetEnded()
		t.ends.checked = now
	}
	if now-t.told >= int64(unseenEvery) {
		t.writeUnseen() // a watch may be killed
		t.writeWaits()
		t.told = now
	}
	return more, nil
}

// leastCounted is the least time that is counted. Counting begins with a new second of the clock, so that what is read
// then is of the second before, and no second is left out. Only the first time is shorter than a second.
const leastCounted = 500 * time.Millisecond

// unseenEvery is how often a long watch records what it did not see.
const unseenEvery = 30 * time.Second

// finish passes on the rest at the end of a watch.
func (t *Tap) finish() error {
	t.lastUses()
	if _, err := t.drain(t.reports.AvailableBytes()); err != nil {
		return err
	}
	t.endHookCost()
	t.ongoing()
	t.recorder.waitLimit.report(t.Options)
	t.writeWaits()
	t.recorder.settle(endOfWatch)
	t.count()
	t.writeUnseen()
	return nil
}

// past is a deadline that has passed: reading does not wait, as the programs wake nobody.
var past = time.Unix(1, 0)

// drain passes on the events that are in the ring buffer, up to `most` bytes of them: where they come faster than they
// are read it is never empty. It reports whether there may be more.
func (t *Tap) drain(most int) (more bool, err error) {
	if t.reports.AvailableBytes() == 0 {
		return false, nil
	}
	var rec ringbuf.Record
	t.reports.SetDeadline(past)
	for most > 0 {
		err := t.reports.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the ring buffer: %w", err)
		}
		t.tally.taken++
		most -= unix.BPF_RINGBUF_HDR_SZ + len(rec.RawSample)
		t.take(rec.RawSample)
	}
	return true, nil
}
