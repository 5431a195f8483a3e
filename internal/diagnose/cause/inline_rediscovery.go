package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
)

// inlineRediscovery: a library that is told MOVED fetches the whole map before it sends the call on: the one call takes
// a connection and a question more. Catalogue D4. That the map is asked for is not what costs; that somebody waits for
// it is.
var inlineRediscovery = Cause{
	ID:    "inline-rediscovery",
	Title: "A call that is answered MOVED waits until its library has fetched the whole map of the cluster again",
	Layer: "client",
	Needs: Needs{
		T0: "MOVED in errorstats with as many CLUSTER SLOTS, of libraries that wait for it by their names in CLIENT " +
			"LIST (node-redis, redis-py, Jedis)",
		T2: "connections that are opened for the map alone, or anew after it, and how long each takes",
	},
	After:   []string{"moved-refresh-storm", "ask-redirect-during-migration", "failover-window"},
	Explain: func(*Node) *Finding { return nil }, // who is told MOVED by one node asks another
	Whole:   explainInline,
}

// inlineHabits are what can be done in the libraries that wait (waitsForMap). redis-py does so at each fifth MOVED
// (reinitialize_steps), and disconnects its free connections.
var inlineHabits = map[string]string{
	"node-redis": "node-redis waits for the map at each MOVED (await rediscover), on a new connection, and has no " +
		"option against it: move slots in few large steps, reconnect the clients one by one after a planned move, " +
		"and bound it by maxCommandRedirections",
	"redis-py": "redis-py: RedisCluster(reinitialize_steps=0): MOVED corrects the one slot only, the map is fetched " +
		"when a connection fails (default 5: the whole map, inside of each fifth such call, and all free connections " +
		"are dropped)",
	"jedis": "Jedis ≥ 5.1: topologyRefreshPeriod(Duration.ofSeconds(30)) in the cluster's configuration: the map is " +
		"fetched beside the calls, and few of them meet a MOVED",
}

// stepsMost is the most MOVED replies after which a library that waits for the map fetches it: redis-py's
// reinitialize_steps is 5, and a call may fail twice.
const stepsMost = 12.0

// inline is what is known of waits for the map.
type inline struct {
	library  string // the one that waits, empty where none is known to
	beside   string // the one that does not, where most of what asks for the map is known to be of such
	fetchers fetchers
	// by how its process treats connections: it does not say its name (before 7.2 the server does not keep it)
	guessed   bool
	calls     float64
	usec      float64
	mapConns  int   // connections that were opened for the map alone
	mapLifeNs int64 // how long they lived, in the median
	dataConns int   // connections that were opened for calls
	openingNs int64 // what each cost before its first call, in the median
	opened    float64
	by        tally
}

func (c *Case) inline() (in inline) {
	in.by = tally{}
	var lives, openings []*Conn
	lettuce := false
	comms, names, askers := tally{}, 0.0, map[int]int{}
	for _, n := range c.Nodes {
		r := n.refreshing()
		in.calls, in.usec, in.opened = in.calls+r.calls, in.usec+r.usec, in.opened+r.opened
		for who, k := range r.by {
			in.by[who] += k
			if pid := pidOf(who); pid > 0 {
				askers[pid] += k
			}
		}
		lettuce = lettuce || r.lettuce
		names += n.namesSet()
		for _, caller := range n.callers() {
			for _, k := range caller.opened() {
				switch {
				case k.forMap():
					lives = append(lives, k)
					askers[caller.PID]++
				case k.Greeting != nil:
					openings = append(openings, k)
				default:
					continue
				}
				comms[caller.Comm]++
			}
		}
	}
	in.mapConns, in.mapLifeNs = len(lives), spreadOf(lives, func(k *Conn) int64 {
		return k.CloseNs - k.OpenNs +
			k.DialNs
	}).mid
	in.dataConns, in.openingNs = len(openings), spreadOf(openings, (*Conn).openingNs).mid
	in.fetchers = c.fetchers(askers)
	in.library, in.beside = in.fetchers.waiting(), in.fetchers.other()
	switch {
	case in.library != "" || in.beside != "":
	case lettuce:
		in.beside = "lettuce"
	default:
		in.guess(comms, names, c.othersNamed())
	}
	return in
}

// forMap: it was opened for nothing but a question or two, and closed.
func (k *Conn) forMap() bool {
	return k.Greeting == nil && k.CloseNs > 0 && k.Calls > 0 && k.Calls <= mapCalls
}

// guess knows node-redis and redis-py by how they fetch the map. ioredis opens a connection for it, too, but gives it a
// name, and does not wait. Where other connections have names, too, that of the application's choice may be on all:
// then the two look alike.
func (in *inline) guess(comms tally, names float64, othersNamed bool) {
	for comm := range comms {
		opened := strings.HasPrefix(comm, "node") && float64(in.mapConns) >= in.calls/2
		switch {
		case opened && names < in.calls/2:
			in.library, in.guessed = "node-redis", true
		case opened && !othersNamed:
			in.beside, in.guessed = "ioredis", true
		case strings.HasPrefix(comm, "python") && float64(in.dataConns) >= in.calls/2:
			in.library, in.guessed = "redis-py", true
		}
	}
}

// othersNamed reports whether connections have names that stay; those for the map are gone when CLIENT LIST is read.
func (c *Case) othersNamed() bool {
	for _, n := range c.Nodes {
		for _, cl := range n.Clients() {
			if cl.Name != "" && !isMapCommand(strings.ToUpper(strings.ReplaceAll(cl.Cmd, "|", " "))) {
				return true
			}
		}
	}
	return false
}

// mapCalls is how many a connection has that was opened for the map: HELLO, AUTH, CLIENT SETINFO twice, CLIENT SETNAME,
// SELECT, and the question.
const mapCalls = 8

// ownNames is how many connections of slowpath itself have names, beside the probe's fresh ones.
const ownNames = 4

// waited reports whether the libraries of the case wait for the map, so far as can be told.
func (in inline) waited(moved float64) bool {
	return in.library != "" && in.calls > 0 && in.calls <= perMoved*1.25*moved && in.calls*stepsMost >= moved
}

func explainInline(c *Case, _ *Finding) *Finding {
	r := c.redirects()
	if r.moved < redirectMin {
		return nil
	}
	in := c.inline()
	if !in.waited(r.moved) {
		return nil
	}
	f := &Finding{Of: len(c.Ledger.Slow), Confidence: 0.8}
	trip, each := c.inlineCost(in)
	lost := in.calls * each
	f.ExcessShare = lost / max(lost+(r.data+r.moved)*trip, 1)
	f.support(recording.SourceServer, fmt.Sprintf("%.0f calls were answered MOVED (errorstats), and the map was "+
		"asked for %.0f times: once for each %.2g", r.moved, in.calls, r.moved/in.calls), r.moved, "replies")
	if in.guessed {
		f.support(recording.SourceTap, "the callers fetch the map as "+in.library+" does, which lets the call wait "+
			"for it", 0, "")
	} else {
		f.support(in.fetchers.source, in.fetchers.how+": the library is "+in.library+", which lets the call wait for "+
			"the map", 0, "")
	}
	if len(in.fetchers.beside) > 0 {
		f.doubt(in.fetchers.source, in.fetchers.how+": "+in.fetchers.beside.list(2)+" as well, which fetches the map "+
			"beside the calls", 0, "")
	}
	if in.mapConns > 0 && float64(in.mapConns) >= in.calls/2 {
		f.Confidence = 0.9
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were opened for the map alone, and closed after "+
			"%s (median): so long a call waited that a call of %s was to be", in.mapConns, dur(in.mapLifeNs),
			dur(int64(trip))),
			float64(in.mapConns), "connections")
	}
	if in.library == "redis-py" && float64(in.dataConns) >= in.calls/2 {
		f.Confidence = 0.9
		f.support(recording.SourceTap, fmt.Sprintf("%d connections were opened anew for calls, %s each before the "+
			"first (median): redis-py drops its free connections with the map", in.dataConns, dur(in.openingNs)),
			float64(in.dataConns), "connections")
	}
	f.support(recording.SourceServer, fmt.Sprintf("each costs its call about %s more, where a call takes %s",
		dur(int64(each)), dur(int64(trip))), each, "ns")
	switch {
	case in.guessed:
		f.Confidence -= 0.2
		f.doubt(recording.SourceServer, "the library does not say its name (lib-name in CLIENT LIST, servers from "+
			"7.2 on): it is inferred from its process and its connections", 0, "")
	case f.Confidence < 0.9:
		f.doubt(recording.SourceServer, "that the calls waited is known of the library, and was not seen", 0, "")
	}
	if len(in.by) > 0 {
		f.support(recording.SourceTap, "the map is asked for by "+in.by.list(3), float64(len(in.by)), "callers")
	}
	f.Fix = []string{inlineHabits[in.library], "Move slots in few large steps, or with Redis ≥ 8.4 (CLUSTER " +
		"MIGRATION IMPORT) and Valkey ≥ 9.0 (CLUSTER MIGRATESLOTS): one change of owner for a whole range"}
	f.See = []string{
		"https://github.com/redis/node-redis/blob/master/docs/clustering.md",
		"https://redis.readthedocs.io/en/stable/clustering.html",
		"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#moved-redirection",
	}
	return f
}

// inlineCost is what a call takes, and what it takes more where it waits for the map, in nanoseconds: by the life of
// the connections that were seen, else a new connection, its handshake and the question.
func (c *Case) inlineCost(in inline) (trip, each float64) {
	var asked refreshing
	var price int64
	for _, n := range c.Nodes {
		if r := n.refreshing(); r.calls > asked.calls {
			asked = r
		}
		p, _, _ := n.prices()
		price = max(price, p)
	}
	trip, question := c.trips(asked)
	switch {
	case in.mapConns > 0:
		return trip, float64(in.mapLifeNs)
	case in.library == "redis-py" && in.dataConns > 0:
		return trip, question + float64(in.openingNs)*float64(in.dataConns)/max(in.calls, 1)
	}
	return trip, question + float64(price)
}
