package cause

import (
	"fmt"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolWaitLeast of the goroutines or threads in calls wait in the pool: fewer is a pool that is now and then short of a
// connection.
const poolWaitLeast = 0.2

func inPool(m stacks.Meaning) bool { return m.State == stacks.PoolWait }

// poolWaitSeen adds the goroutines or threads that wait for a connection. They are the fact itself, and need no other.
func poolWaitSeen(c *Case, f *Finding) *Finding {
	w, ok := c.worstWait(inPool)
	if !ok || w.Share < poolWaitLeast {
		if f != nil && len(c.Apps) > 0 && c.sameCallers(c.Apps) {
			return nil // all who call were looked at, and none of them waits
		}
		return f
	}
	if f == nil {
		f = &Finding{
			Of: len(c.Ledger.Slow), Fix: poolSeenFix(w),
			See: []string{"https://redis.io/docs/latest/develop/clients/pools-and-muxing/"},
		}
	}
	rest := f.Evidence
	f.Evidence, f.Against = nil, nil // what spoke against it was that waiting is not seen from outside
	f.Confidence, f.ExcessShare = 0.95, max(f.ExcessShare, w.Share)
	f.supportWait(w)
	if n, ok := w.App.waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply ||
			m.State == stacks.Send
	}); ok {
		f.support(recording.SourceProfile, fmt.Sprintf("%s: %d meanwhile send, or wait for a reply: so many "+
			"connections are in use", w.App.called(), n.Count), float64(n.Count), w.App.units())
	}
	f.Evidence = append(f.Evidence, rest...)
	return f
}

// sameCallers says that every process that calls is one of the applications, by its name: comm has 15 characters of it.
func (c *Case) sameCallers(apps []*Application) bool {
	known := map[string]bool{}
	for _, a := range apps {
		known[a.Name[:min(len(a.Name), 15)]] = true
	}
	seen := 0
	for _, n := range c.Nodes {
		for _, caller := range n.callers() {
			if !known[caller.Comm] {
				return false
			}
			seen++
		}
	}
	return seen > 0
}

// poolOptions is the option of a library that a pool's size is.
var poolOptions = map[string]string{
	"go-redis":      "go-redis: PoolSize (10 per CPU by default), MinIdleConns",
	"redigo":        "redigo: MaxActive and MaxIdle",
	"rueidis":       "rueidis: BlockingPoolSize for blocking and dedicated calls, RingScaleEachConn for the others",
	"Jedis":         "Jedis: setMaxTotal and setMaxIdle (8 by default), setMaxWait",
	"commons-pool2": "commons-pool2: setMaxTotal and setMaxIdle (8 by default), setMaxWait",
}

func poolSeenFix(w Wait) []string {
	fix := []string{fmt.Sprintf("Give the pool room for those who wait: %d are in calls at a time", w.Calls)}
	if line, ok := poolOptions[w.Meaning.Library]; ok {
		fix = append(fix, line)
	}
	return append(fix, "Hold connections for less: pipelines and MGET in place of calls one by one; no blocking "+
		"commands (BLPOP, XREAD BLOCK) from the same pool")
}
