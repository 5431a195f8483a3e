package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

// TestRateLimitHolds: never more than the limit in any second.
func TestRateLimitHolds(t *testing.T) {
	const perSecond = 100
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1e9, 0)
	limit := newRateLimit(perSecond, now)
	type sent struct {
		at time.Time
		n  int
	}
	var all []sent
	total := 0
	for range 20_000 {
		now = now.Add(time.Duration(r.Int64N(int64(10 * time.Millisecond))))
		if n := 1 + r.IntN(measureCommands); limit.take(n, now) {
			all, total = append(all, sent{now, n}), total+n
		}
		sum := 0
		for i := len(all) - 1; i >= 0 && now.Sub(all[i].at) < time.Second; i-- {
			sum += all[i].n
		}
		if sum > perSecond {
			t.Fatalf("%d commands within a second", sum)
		}
	}
	if seconds := now.Sub(time.Unix(1e9, 0)).Seconds(); float64(total) < 0.5*perSecond*seconds {
		t.Errorf("only %d commands in %.0f s", total, seconds)
	}
}

func newPollers(primaries, replicas int) (list []*poller) {
	for i := range primaries + replicas {
		list = append(list, &poller{id: string(rune('a' + i)), primary: i < primaries})
	}
	return list
}

func TestPollSet(t *testing.T) {
	lost := func(list []*poller, which ...int) []*poller {
		for _, i := range which {
			list[i].unreachable = true
		}
		return list
	}
	for _, test := range []struct {
		name                     string
		posts                    []*poller
		broadcast, broadcastLate bool
		want                     string
	}{
		{"replicas", newPollers(3, 3), true, false, "def"},
		{"replicas that can be reached", lost(newPollers(3, 3), 4), true, false, "df"},
		{"masters where there are no replicas", newPollers(3, 0), true, false, "abc"},
		{"masters where no replica can be reached", lost(newPollers(2, 1), 2), true, false, "ab"},
		{"masters of old versions", newPollers(3, 3), false, false, "abc"},
		{"masters where broadcasts were late", newPollers(3, 3), true, true, "abc"},
		{"replicas where no master can be reached", lost(newPollers(1, 1), 0), false, false, "b"},
	} {
		s := schedule{pollers: test.posts, broadcast: test.broadcast, broadcastLate: test.broadcastLate}
		got := ""
		for _, p := range s.pollSet() {
			got += p.id
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestScheduleKeepsItsBounds runs an hour of the schedule with nodes that answer at once.
func TestScheduleKeepsItsBounds(t *testing.T) {
	for _, test := range []struct {
		name      string
		broadcast bool
		gap       time.Duration
	}{{"broadcast", true, 0}, {"broadcast, expensive", true, time.Second}, {"no broadcast", false, 0}, {
		"no broadcast, expensive", false,
		400 * time.Millisecond,
	}} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			s := schedule{pollers: newPollers(3, 3), broadcast: test.broadcast, gap: test.gap}
			limit := newRateLimit(100, start)
			polls, fullMaps, last := 0, map[*poller]int{}, map[*poller]time.Time{}
			for now := start; now.Before(start.Add(time.Hour)); {
				if now.Sub(start)%(10*time.Minute) < time.Minute {
					s.stayActive(now, time.Second)
				}
				task, ok, wait := s.next(now, func(n int) bool { return limit.take(n, now) })
				if wait < minWait {
					t.Fatalf("waits %v", wait)
				}
				if ok && task.request.fullMap {
					fullMaps[task.poller]++
				}
				if ok && !task.request.fullMap && !task.request.measure {
					polls++
					if now.Sub(last[task.poller]) < test.gap {
						t.Fatalf("a node is polled after %v", now.Sub(last[task.poller]))
					}
					last[task.poller] = now
				}
				now = now.Add(wait)
			}
			if polls < 3600 || len(fullMaps) != 6 {
				t.Errorf("%d polls, whole maps of %d nodes", polls, len(fullMaps))
			}
			for p, n := range fullMaps {
				if n < 500 {
					t.Errorf("%d whole maps of %s in an hour", n, p.id)
				}
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	nodes := func(s string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(s)} }
	base := byNodes.fingerprint(nodes("a 1:1@2 master - 0 17 3 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n"))
	if base != byNodes.fingerprint(nodes("a 1:1@2 master - 99 18 3 connected 0-5\nb 1:2@3 slave a 7 8 3 connected\n")) {
		t.Error("pings change the fingerprint")
	}
	for _, other := range []string{
		"a 1:1@2 master - 0 17 3 connected 0-6\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master,fail - 0 17 3 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master - 0 17 4 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master - 0 17 3 connected 0-5\n",
	} {
		if base == byNodes.fingerprint(nodes(other)) {
			t.Errorf("the same fingerprint: %q", other)
		}
	}
	slots := func(last int64) resp.Value {
		return resp.Value{Kind: resp.Array, Elems: []resp.Value{{
			Kind:  resp.Array,
			Elems: []resp.Value{{Kind: resp.Integer}, {Kind: resp.Integer, Int: last}},
		}}}
	}
	first, again, other := bySlots.fingerprint(slots(5)), bySlots.fingerprint(slots(5)), bySlots.fingerprint(slots(6))
	if first != again || first == other {
		t.Errorf("fingerprints of CLUSTER SLOTS: %x, again %x, of another map %x", first, again, other)
	}
}

func TestCommandStat(t *testing.T) {
	const text = "# Commandstats\r\ncmdstat_cluster|slots:calls=3,usec=27,usec_per_call=9.00,rejected_calls=0\r\n" +
		"cmdstat_cluster:calls=7,usec=100,usec_per_call=14.29\r\ncmdstat_bad:calls=x,usec=1\r\n"
	for name, want := range map[string]stat{
		"cluster|slots": {3, 27 * time.Microsecond},
		"cluster":       {7, 100 * time.Microsecond},
	} {
		if got, ok := commandStat(text, name); !ok || got != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"bad", "cluster|nodes", "clus"} {
		if got, ok := commandStat(text, name); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzCommandStat(f *testing.F) {
	f.Add("cmdstat_cluster:calls=7,usec=100,usec_per_call=14.29\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, _ := commandStat(text, "cluster"); got.calls < 0 || got.time < 0 {
			t.Errorf("%v", got)
		}
	})
}

func FuzzFingerprint(f *testing.F) {
	f.Add("a 1:1@2 master - 0 17 3 connected 0-5\n")
	f.Fuzz(func(t *testing.T, text string) {
		first := byNodes.fingerprint(resp.Value{Kind: resp.BulkString, Str: []byte(text)})
		if again := byNodes.fingerprint(resp.Value{Kind: resp.BulkString, Str: []byte(text)}); first != again {
			t.Errorf("%x, again %x", first, again)
		}
	})
}

// TestQueueOfMessagesIsBounded: however many moves there are, only the last owner of a slot is queued.
func TestQueueOfMessagesIsBounded(t *testing.T) {
	p := &publisher{wake: make(chan struct{}, 1), waiting: map[string]message{}}
	all := []cluster.Range{{From: 0, To: cluster.SlotCount - 1}}
	for range 10 {
		p.add(Event{Kind: SlotMoved, Slots: all, To: "a:1"}, nil)
		p.add(Event{Kind: SlotMoved, Slots: all[:1], To: "b:1"}, nil)
		p.add(Event{Kind: NodeLeft, From: "c:1"}, nil)
		p.add(Event{Kind: FailoverStarted, Slots: all, From: "c:1"}, nil)
	}
	if len(p.order) != cluster.SlotCount || len(p.waiting) != cluster.SlotCount {
		t.Errorf("%d messages wait", len(p.order))
	}
	batch, _ := p.batch()
	if len(batch) != publishBatch || batch[3] != (message{movedChannel, "3 b:1"}) {
		t.Errorf("%d messages, %v", len(batch), batch[3])
	}
}
