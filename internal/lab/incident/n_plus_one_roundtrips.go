package incident

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/lab/fleet"
)

// nPlusOneRoundtrips makes a page of 100 GETs, one after the other, on a path of 2 ms. No call is slow; the page is.
// What its callers are said to have waited for is the page.
var nPlusOneRoundtrips = Incident{
	ID:    "n-plus-one-roundtrips",
	Cause: "n-plus-one-roundtrips",
	Title: "requests that make 100 GETs one after the other, each 2 ms away",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		far, err := l.delayProxy(s.Addr, 2)
		if err != nil {
			return Scene{}, err
		}
		pages, gets := l.timings("requests of 100 GETs"), l.timings("GETs, each alone")
		const users = 4
		for range users {
			err := l.repeat(ctx, net.Dialer{}, far, 200*time.Millisecond, func(c *caller) error {
				return pages.time(func() error { return oneByOne(c, gets, 100) })
			})
			if err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: far}, nil
	},
}

// oneByOne gets n values as a loop over ids does.
func oneByOne(c *caller, each *timings, n int) error {
	for range n {
		if err := each.time(func() error { return c.ask("GET", "lab:"+itoa(rand.IntN(10_000))) }); err != nil {
			return err
		}
	}
	return nil
}
