package otlp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Stats are numbers of one channel since the start.
type Stats struct {
	Sent, Failed, Dropped, Bytes, Queued int64
	LastSuccess, LastError               time.Time
	Error                                string // the last one
}

// channel is what is sent of one kind: spans, or pushes of metrics.
type channel struct {
	what   string // in sentences: spans
	kept   bool   // what fails is on disk, and sent later
	to     string
	log    func(string)
	budget *budget

	mu         sync.Mutex
	stats      Stats
	failing    bool
	pause      time.Duration // until the next try, after the last one
	until      time.Time     // when that is
	lost       int64         // while it fails
	refused    bool          // the collector will never take the last push
	overBudget bool
}

// refuses notices that the collector will never take the push that is under way.
func (c *channel) refuses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// wrote counts bytes on the wire.
func (c *channel) wrote(bytes int) {
	c.budget.spend(float64(bytes))
	c.mu.Lock()
	c.stats.Bytes += int64(bytes)
	c.mu.Unlock()
}

// send sends n things by do, if the budget allows it, and says in one line when that begins to fail, and when it works
// again. It reports whether they were sent, or are given up as the collector never takes them. Its errors end here:
// what feeds it never waits for a collector that is away.
func (c *channel) send(n int, do func() error) bool {
	if !c.budget.allows() {
		if c.kept {
			c.over("wait", 0)
		} else {
			c.over("are left out", n)
		}
		return false
	}
	c.mu.Lock()
	c.refused = false
	c.mu.Unlock()
	err := do()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budget.halfFull() {
		c.overBudget = false
	}
	now := time.Now()
	if err != nil {
		c.pause = min(max(2*c.pause, firstPause), longestPause)
		c.until = now.Add(c.pause)
		if !c.kept || c.refused {
			c.stats.Failed += int64(n)
			c.lost += int64(n)
		}
		c.stats.LastError, c.stats.Error = now, err.Error()
		if !c.failing {
			c.failing = true
			c.log(fmt.Sprintf("otlp: %s does not take %s: %.200s; said once until it does", c.to, c.what, err))
		}
		return c.refused
	}
	c.stats.Sent += int64(n)
	c.pause, c.until = 0, time.Time{}
	c.stats.LastSuccess = now
	if c.failing {
		lost := fmt.Sprintf("%d were lost", c.lost)
		if c.kept && c.lost == 0 {
			lost = "those that are still kept are sent now"
		}
		c.log(fmt.Sprintf("otlp: %s takes %s again; %s", c.to, c.what, lost))
		c.failing, c.lost = false, 0
	}
	return true
}

// Pauses after things that a collector did not take.
const (
	firstPause   = 10 * time.Second
	longestPause = time.Minute
)

// rests reports whether it is too early for another try.
func (c *channel) rests() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}

// queued says how many things wait.
func (c *channel) queued(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Queued = int64(n)
}

// over counts what is left out above the budget, and says what becomes of things once until the budget is half full
// again: at its end, a little is sent each few minutes.
func (c *channel) over(become string, leftOut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Dropped += int64(leftOut)
	if !c.overBudget {
		c.overBudget = true
		c.log(fmt.Sprintf("otlp: %s %s: as much was sent as --otlp-bytes-per-day allows by now", c.what, become))
	}
}

func (c *channel) numbers() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// metricExporter is an exporter within a channel.
type metricExporter struct {
	metric.Exporter
	*channel
}

// Export implements metric.Exporter.
func (e metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	e.send(1, func() error { return e.Exporter.Export(ctx, rm) })
	return nil
}
