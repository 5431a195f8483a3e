package scenario

import (
	"context"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
)

// nPlusOneNear builds a page from 1000 GETs, one after the other, on the server's host. A GET takes less than 0.1 ms,
// and the page tens of milliseconds.
var nPlusOneNear = Scenario{
	ID:    "n-plus-one-roundtrips-near",
	Cause: "n-plus-one-roundtrips",
	Title: "requests that make 1000 GETs one after the other, on the server's host",
	Fixes: []string{"batch-calls"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		pages, gets := l.timings("requests of 1000 GETs"), l.timings("GETs, each alone")
		page := l.page()
		const users = 2
		for range users {
			err := l.startCaller(ctx, net.Dialer{}, s.Addr, 500*time.Millisecond, func(c *caller) error {
				return pages.time(func() error { return page(c, gets, 1000) })
			})
			if err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: s.Addr}, nil
	},
}
