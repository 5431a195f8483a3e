// Package delivery sends what the agent has to others: within a budget, with pauses after what failed, one line in the
// log when a receiver goes away and one when it is back, and numbers for the metrics.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Stats are numbers of one channel since the start.
type Stats struct {
	Sent, Failed, Dropped, Bytes, Queued int64
	LastSuccess, LastError               time.Time
	Error                                string // the last one
}

// Options of a channel.
type Options struct {
	Name   string // begins its lines in the log: otlp
	What   string // in sentences: spans
	To     string // the receiver, without secrets
	Kept   bool   // what fails is on disk, and sent later
	Limit  string // the flag of the budget
	Budget *Budget
	Pause  time.Duration // the first one after what failed; 0: ten seconds. The next ones are longer, up to a minute.
	Log    func(string)
}

// Channel is what is sent of one kind to one receiver: spans, pushes of metrics, recordings.
type Channel struct {
	Options

	mu         sync.Mutex
	stats      Stats
	failing    bool
	pause      time.Duration // until the next try, after the last one
	until      time.Time     // when that is
	lost       int64         // while it fails
	refused    bool          // the receiver will never take the last push
	overBudget bool
}

// Refuses notices that the receiver will never take the push that is under way.
func (c *Channel) Refuses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// Wrote counts bytes on the wire.
func (c *Channel) Wrote(bytes int) {
	c.Budget.Spend(float64(bytes))
	c.mu.Lock()
	c.stats.Bytes += int64(bytes)
	c.mu.Unlock()
}

// Send sends n things by do, if the budget allows it, and says in one line when that begins to fail, and when it works
// again. It reports whether they were sent, or are given up as the receiver never takes them. Its errors end here:
// what feeds it never waits for a receiver that is away.
func (c *Channel) Send(n int, do func() error) bool {
	if !c.Budget.Allows() {
		if c.Kept {
			c.Over("wait", 0)
		} else {
			c.Over("are left out", n)
		}
		return false
	}
	c.mu.Lock()
	c.refused = false
	c.mu.Unlock()
	err := do()
	if errors.Is(err, context.Canceled) {
		return false // the agent ends
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Budget.halfFull() {
		c.overBudget = false
	}
	now := time.Now()
	if err != nil {
		c.pause = min(max(2*c.pause, cmp.Or(c.Pause, firstPause)), longestPause)
		c.until = now.Add(c.pause)
		if !c.Kept || c.refused {
			c.stats.Failed += int64(n)
			c.lost += int64(n)
		}
		c.stats.LastError, c.stats.Error = now, err.Error()
		if !c.failing {
			c.failing = true
			c.Log(fmt.Sprintf("%s: %s does not take %s: %.300s; said once until it does", c.Name, c.To, c.What, err))
		}
		return c.refused
	}
	c.stats.Sent += int64(n)
	c.pause, c.until = 0, time.Time{}
	c.stats.LastSuccess = now
	if c.failing {
		lost := fmt.Sprintf("%d were lost", c.lost)
		if c.Kept && c.lost == 0 {
			lost = "those that are still kept are sent now"
		}
		c.Log(fmt.Sprintf("%s: %s takes %s again; %s", c.Name, c.To, c.What, lost))
		c.failing, c.lost = false, 0
	}
	return true
}

// Pauses after things that a receiver did not take.
const (
	firstPause   = 10 * time.Second
	longestPause = time.Minute
)

// Rests reports whether it is too early for another try.
func (c *Channel) Rests() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}

// LeftOut counts things that are not sent.
func (c *Channel) LeftOut(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Dropped += int64(n)
}

// Queued says how many things wait.
func (c *Channel) Queued(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Queued = int64(n)
}

// Over counts what is left out above the budget, and says what becomes of things once until the budget is half full
// again: at its end, a little is sent each few minutes.
func (c *Channel) Over(become string, leftOut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Dropped += int64(leftOut)
	if !c.overBudget {
		c.overBudget = true
		c.Log(fmt.Sprintf("%s: %s %s: as much was sent as %s allows by now", c.Name, c.What, become, c.Limit))
	}
}

// Numbers are those since the start.
func (c *Channel) Numbers() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}
