package source

import (
	"sync/atomic"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// quiet has slowpath make fewer calls of its own to a server that nobody else calls: each of them wakes it up, which
// is most of what a watch costs it. Where one of them is slow, all are made for a while.
type quiet struct {
	pace  clock.Pace
	clock clock.Clock
	slow  time.Duration
	alert atomic.Int64 // until when all are made
}

const (
	quietPace    = 5
	quietLoad    = 150 // commands per second, of which slowpath itself makes up to 70
	alertedAfter = 5 * time.Second
)

// load takes how many commands a server serves per second.
func (q *quiet) load(perSecond float64) {
	if perSecond >= quietLoad || q.clock.Now() < q.alert.Load() {
		q.pace.Set(1)
		return
	}
	q.pace.Set(quietPace)
}

// called takes a call of slowpath's own, and how long it took.
func (q *quiet) called(_ recording.Call, took time.Duration) {
	if took >= q.slow {
		q.alert.Store(q.clock.Now() + int64(alertedAfter))
		q.pace.Set(1)
	}
}
