package web

import (
	"sync"
	"time"
)

const (
	overviewAge  = 2 * time.Second // for which a document is as good as a new one
	maxOverviews = 32              // of some 30 kB
)

// overviewCache keeps the newest documents: a hundred pages that show the same time ask for the same ones.
type overviewCache struct {
	mu  sync.Mutex
	all map[view]overviewBody
}

type overviewBody struct {
	made time.Time
	body []byte
}

func (c *overviewCache) get(v view, now time.Time) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.all[v]
	return one.body, ok && now.Sub(one.made) < overviewAge && !now.Before(one.made)
}

func (c *overviewCache) keep(v view, now time.Time, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxOverviews || c.all == nil {
		c.all = map[view]overviewBody{}
	}
	c.all[v] = overviewBody{now, body}
}

// forget is called when something was written that the documents are to show at once.
func (c *overviewCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}
