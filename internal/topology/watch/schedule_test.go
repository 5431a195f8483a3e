package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

// TestAllowanceHolds: in no second more than was allowed, however it is asked.
func TestAllowanceHolds(t *testing.T) {
	const perSecond = 100
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1e9, 0)
	a := newAllowance(perSecond, now)
	type sent struct {
		at time.Time
		n  int
	}
	var all []sent
	total := 0
	for range 20_000 {
		now = now.Add(time.Duration(r.Int64N(int64(10 * time.Millisecond))))
		if n := 1 + r.IntN(weighCommands); a.take(n, now) {
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

func posts(primaries, replicas int) (list []*post) {
	for i := range primaries + replicas {
		list = append(list, &post{id: string(rune('a' + i)), primary: i < primaries})
	}
	return list
}

func TestWhoIsAsked(t *testing.T) {
	lost := func(list []*post, which ...int) []*post {
		for _, i := range which {
			list[i].lost = true
		}
		return list
	}
	for _, test := range []struct {
		name            string
		posts           []*post
		early, mistrust bool
		want            string
	}{
		{"replicas", posts(3, 3), true, false, "def"},
		{"replicas that can be reached", lost(posts(3, 3), 4), true, false, "df"},
		{"masters where there are no replicas", posts(3, 0), true, false, "abc"},
		{"masters where no replica can be reached", lost(posts(2, 1), 2), true, false, "ab"},
		{"masters of old versions", posts(3, 3), false, false, "abc"},
		{"masters where replicas were late", posts(3, 3), true, true, "abc"},
		{"replicas where no master can be reached", lost(posts(1, 1), 0), false, false, "b"},
	} {
		s := schedule{posts: test.posts, early: test.early, mistrust: test.mistrust}
		got := ""
		for _, p := range s.pulseSet() {
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
		name  string
		early bool
		gap   time.Duration
	}{{"early", true, 0}, {"early, dear", true, time.Second}, {"late", false, 0}, {
		"late, dear", false,
		400 * time.Millisecond,
	}} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			s := schedule{posts: posts(3, 3), early: test.early, gap: test.gap}
			a := newAllowance(100, start)
			pulses, surveys, last := 0, map[*post]int{}, map[*post]time.Time{}
			for now := start; now.Before(start.Add(time.Hour)); {
				if now.Sub(start)%(10*time.Minute) < time.Minute {
					s.stir(now, time.Second)
				}
				o, ok, wait := s.next(now, func(n int) bool { return a.take(n, now) })
				if wait < shortest {
					t.Fatalf("waits %v", wait)
				}
				if ok && o.ask.survey {
					surveys[o.post]++
				}
				if ok && !o.ask.survey && !o.ask.weigh {
					pulses++
					if now.Sub(last[o.post]) < test.gap {
						t.Fatalf("a node is asked after %v", now.Sub(last[o.post]))
					}
					last[o.post] = now
				}
				now = now.Add(wait)
			}
			if pulses < 3600 || len(surveys) != 6 {
				t.Errorf("%d pulses, whole maps of %d nodes", pulses, len(surveys))
			}
			for p, n := range surveys {
				if n < 500 {
					t.Errorf("%d whole maps of %s in an hour", n, p.id)
				}
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	nodes := func(s string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(s)} }
	calm := byNodes.fingerprint(nodes("a 1:1@2 master - 0 17 3 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n"))
	if calm != byNodes.fingerprint(nodes("a 1:1@2 master - 99 18 3 connected 0-5\nb 1:2@3 slave a 7 8 3 connected\n")) {
		t.Error("pings change the fingerprint")
	}
	for _, other := range []string{
		"a 1:1@2 master - 0 17 3 connected 0-6\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master,fail - 0 17 3 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master - 0 17 4 connected 0-5\nb 1:2@3 slave a 5 6 3 connected\n",
		"a 1:1@2 master - 0 17 3 connected 0-5\n",
	} {
		if calm == byNodes.fingerprint(nodes(other)) {
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

// TestQueueOfMessagesIsBounded: however many moves are told, of a slot only its last owner waits.
func TestQueueOfMessagesIsBounded(t *testing.T) {
	p := &publisher{wake: make(chan struct{}, 1), waiting: map[string]message{}}
	all := []cluster.Range{{From: 0, To: cluster.SlotCount - 1}}
	for range 10 {
		p.tell(Event{Kind: SlotMoved, Slots: all, To: "a:1"}, nil)
		p.tell(Event{Kind: SlotMoved, Slots: all[:1], To: "b:1"}, nil)
		p.tell(Event{Kind: NodeLeft, From: "c:1"}, nil)
		p.tell(Event{Kind: FailoverStarted, Slots: all, From: "c:1"}, nil)
	}
	if len(p.order) != cluster.SlotCount || len(p.waiting) != cluster.SlotCount {
		t.Errorf("%d messages wait", len(p.order))
	}
	batch, _ := p.batch()
	if len(batch) != publishBatch || batch[3] != (message{MovedChannel, "3 b:1"}) {
		t.Errorf("%d messages, %v", len(batch), batch[3])
	}
}
