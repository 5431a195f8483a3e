package scenario

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// nPlusOneRoundtrips builds a page from 100 GETs, one after the other, on a path of 2 ms. No call is slow, but the page
// is.
var nPlusOneRoundtrips = Scenario{
	ID:    "n-plus-one-roundtrips",
	Cause: "n-plus-one-roundtrips",
	Title: "requests that make 100 GETs one after the other, 2 ms from their server",
	Fixes: []string{"batch-calls"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		far, err := (&fault.Proxy{Server: s.Addr, ReplyDelay: 2 * time.Millisecond}).Start(ctx, l)
		if err != nil {
			return Scene{}, err
		}
		pages, gets := l.timings("requests of 100 GETs"), l.timings("GETs, each alone")
		page := l.page()
		const users = 4
		for range users {
			err := l.startCaller(ctx, net.Dialer{}, far, 200*time.Millisecond, func(c *caller) error {
				return pages.time(func() error { return page(c, gets, 100) })
			})
			if err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: far}, nil
	},
}

// page is how callers get values: one after the other, or all at once where that step of the fix is carried out.
func (l *Lab) page() func(c *caller, each *timings, n int) error {
	if l.Fixed("batch-calls") {
		return allAtOnce
	}
	return oneByOne
}

// allAtOnce gets n values by one MGET.
func allAtOnce(c *caller, _ *timings, n int) error {
	all := []string{"MGET"}
	for range n {
		all = append(all, "lab:"+itoa(rand.IntN(10_000)))
	}
	return c.call(all...)
}

// oneByOne gets n values as a loop over ids does.
func oneByOne(c *caller, each *timings, n int) error {
	for range n {
		if err := each.time(func() error { return c.call("GET", "lab:"+itoa(rand.IntN(10_000))) }); err != nil {
			return err
		}
	}
	return nil
}

// oneKeyAtATime asks for keys one after the other, instead of all at once.
var oneKeyAtATime = Fault{
	Name:  "n-plus-one-roundtrips",
	Cause: "n-plus-one-roundtrips",
	Needs: Needs{Topologies: []Topology{Standalone, Proxied}, Callers: []clients.Name{
		clients.GoRedis8, clients.GoRedis9, clients.Redigo, clients.RedisPy, clients.NodeRedis, clients.Jedis,
	}},
	Draw: func(r *rand.Rand) Strength { return Strength{"keys": between(r, 5, 100)} },
	Base: func(o *clients.Options, s Strength) {
		all := []string{"MGET"}
		for range s.int("keys") {
			all = append(all, "doc:{n}")
		}
		o.Workers, o.Rate, o.Commands = 4, 8, []clients.Command{{Args: all}}
	},
	Caller: func(o *clients.Options, s Strength) { o.Chain, o.Commands = s.int("keys"), smallReads() },
}
