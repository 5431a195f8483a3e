package server

import (
	"fmt"
	"testing"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

const sec = int64(time.Second)

func at(seconds float64) pollTime {
	t := int64(seconds * 1e9)
	return pollTime{t, t + int64(time.Millisecond)}
}

func TestSampler(t *testing.T) {
	rec := recording.New()
	s := sampler{sink: rec, subject: "n"}
	s.poll(at(1), []field{{"a", 1}, {"cmdstat_get.calls", 5}, {"gauge", 7}}, false)
	s.poll(at(2), []field{{"a", 1}, {"cmdstat_get.calls", 5}, {"gauge", 7}}, false)
	// get vanished: a reset
	s.poll(at(3), []field{{"a", 2}, {"cmdstat_keys.calls", 1}, {"late_gauge", 3}, {"gauge", 7}}, false)
	s.poll(at(4), []field{
		{"a", 2},
		{"cmdstat_keys.calls", 1},
		{"cmdstat_get.calls", 9},
		{"late_gauge", 3},
		{"gauge", 7},
	}, true)
	rec.Index()
	for name, want := range map[string]recording.Series{
		"a": {{TimeNs: at(1).done, Value: 1}, {TimeNs: at(2).sent, Value: 1}, {
			TimeNs: at(3).done,
			Value:  2,
		}, {TimeNs: at(4).done, Value: 2}},
		"gauge":      {{TimeNs: at(1).done, Value: 7}, {TimeNs: at(4).done, Value: 7}},
		"late_gauge": {{TimeNs: at(3).done, Value: 3}, {TimeNs: at(4).done, Value: 3}},
		"cmdstat_keys.calls": {{TimeNs: at(2).sent, Value: 0}, {TimeNs: at(3).done, Value: 1}, {
			TimeNs: at(4).done,
			Value:  1,
		}},
		"cmdstat_get.calls": {{TimeNs: at(1).done, Value: 5}, {TimeNs: at(2).sent, Value: 5}, {
			TimeNs: at(3).done,
			Value:  0,
		}, {TimeNs: at(4).done, Value: 9}},
	} {
		got := rec.Series(source, "n", name)
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", name, got, want)
				break
			}
		}
	}
}

func TestServerClock(t *testing.T) {
	c := serverClock{remote: true}
	from, to := c.window(100)
	if from != 100*sec-unknownErrNs || to < 101*sec+unknownErrNs {
		t.Errorf("unknown: %d %d", from, to)
	}
	c.learn(pollTime{10 * sec, 10*sec + 2e6}, 1_000_010_001_000) // 10.001 s here is 1000010.001 s there
	if c.offset != 1_000_000*sec || c.errNs != 1e6 {
		t.Errorf("%+v", c)
	}
	c.learn(pollTime{11 * sec, 14 * sec}, 1_000_012_000_000) // a slow poll says less
	if c.errNs != 1e6 {
		t.Errorf("%+v", c)
	}
	if from, to = c.window(1_000_020); from != 20*sec-1e6 || to != 21*sec+1e6+lagNs {
		t.Errorf("%d %d", from, to)
	}
	if c.second(25*sec) != 1_000_025 {
		t.Error(c.second(25 * sec))
	}
}

func TestIsRemote(t *testing.T) {
	for _, tt := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"10.0.0.1:1", "10.0.0.1:2", false},
		{"10.0.0.1:1", "10.0.0.2:2", true},
		{"[::1]:1", "[::1]:2", false},
		{"@", "/run/redis.sock", false},
	} {
		if got := isRemote(tt.local, tt.remote); got != tt.want {
			t.Errorf("%+v", tt)
		}
	}
}

func slow(id, second int64) logEntry {
	return logEntry{id: id, second: second, amount: 20_000, command: "KEYS"}
}

func slowlogIDs(rec *recording.Recording) (ids []int64) {
	for _, e := range rec.EventsOf(source, "", recording.KindSlowlog) {
		ids = append(ids, recording.DetailOf[recording.SlowlogDetail](e).ID)
	}
	return ids
}

func TestSlowlogReader(t *testing.T) {
	rec := recording.New()
	r := logReader{
		of:   slowlog,
		sink: rec, clock: &serverClock{}, startNs: 100*sec + sec/2,
		own: func(e logEntry) bool { return e.name == ClientName },
	}
	if n := r.missing([]logEntry{slow(10, 99)}); n != fetchAtMost {
		t.Errorf("first: %d", n)
	}
	// The first connection came late: 10 was there before the start, 11 may have been, 12 was not.
	r.read(at(103), []logEntry{slow(12, 102), slow(11, 100), slow(10, 99)})
	if n := r.missing([]logEntry{slow(12, 102)}); n != 0 {
		t.Errorf("nothing new: %d", n)
	}
	r.nothingNew(at(104))
	if n := r.missing([]logEntry{slow(15, 105)}); n != 3 {
		t.Errorf("three new: %d", n)
	}
	own := slow(14, 104)
	own.name = ClientName
	r.read(at(105.5), []logEntry{slow(15, 105), own, slow(13, 104), slow(12, 102)})
	r.read(at(106), []logEntry{slow(20, 106), slow(19, 106)}) // 16 to 18 were overwritten
	r.restarted()
	r.read(at(107), []logEntry{slow(0, 107)})
	ids := slowlogIDs(rec)
	want := []int64{12, 13, 15, 19, 20, 0}
	if len(ids) != len(want) {
		t.Fatal(ids)
	}
	for i := range want {
		if ids[i] != want[i] {
			t.Fatal(ids)
		}
	}
	if r.lost != 3 {
		t.Errorf("lost %d", r.lost)
	}
	// Of second 105 only what lies between the two polls.
	e := rec.Events[2]
	if d := recording.DetailOf[recording.SlowlogDetail](e); e.TimeNs != 105*sec ||
		e.TimeNs+d.WindowNs != at(105.5).done {
		t.Errorf("%+v %+v", e, d)
	}
}

func TestSlowlogWithClocksThatDisagree(t *testing.T) {
	rec := recording.New()
	r := logReader{
		of: slowlog, sink: rec, clock: &serverClock{}, startNs: 100 * sec, own: func(logEntry) bool { return false },
	}
	r.nothingNew(at(101))
	r.read(at(102), []logEntry{slow(0, 5000)})
	e := rec.Events[0]
	if d := recording.DetailOf[recording.SlowlogDetail](e); e.TimeNs != at(101).sent ||
		e.TimeNs+d.WindowNs != at(102).done {
		t.Errorf("%+v", e)
	}
}

func TestLatencyReader(t *testing.T) {
	rec := recording.New()
	r := latencyReader{sink: rec, clock: &serverClock{}, startNs: 100*sec + sec/2}
	if e := r.stale([]latest{{"fork", spike{100, 7}}, {"old", spike{50, 1}}}); len(e) != 0 {
		t.Errorf("first poll: %v", e)
	}
	now := []latest{{"fork", spike{102, 9}}, {"old", spike{50, 1}}, {"new", spike{100, 3}}}
	if e := r.stale(now); len(e) != 2 || e[0] != "fork" || e[1] != "new" {
		t.Fatalf("%v", e)
	}
	r.read(at(102.2), "new", []spike{{100, 3}}, false)
	// 100 has grown since; 102 is not over
	r.read(at(102.2), "fork", []spike{{99, 4}, {100, 8}, {101, 2}, {102, 9}}, false)
	if n := len(rec.Events); n != 3 {
		t.Fatalf("%d: %+v", n, rec.Events)
	}
	if e := r.stale(now); len(e) != 1 || e[0] != "fork" {
		t.Fatalf("%v", e)
	}
	r.read(at(103.2), "fork", []spike{{99, 4}, {100, 8}, {101, 2}, {102, 11}}, false)
	if e := rec.Events[3]; len(rec.Events) != 4 || e.DurationNs != 11e6 || e.TimeNs != 102*sec {
		t.Fatalf("%+v", rec.Events)
	}
	r.read(at(104.5), "fork", []spike{{104, 5}}, true)
	if len(rec.Events) != 5 {
		t.Error("the last second is missing")
	}
}

func numbers(pairs ...any) info {
	in := info{numbers: map[string]float64{"latest_fork_usec": 100}, text: map[string]string{"run_id": "r"}}
	for i := 0; i < len(pairs); i += 2 {
		in.numbers[pairs[i].(string)] = float64(pairs[i+1].(int))
	}
	return in
}

func TestForks(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after info
		why           string
		forked        bool
	}{
		"nothing": {numbers(), numbers(), "", false},
		"counted": {
			numbers("total_forks", 1), numbers("total_forks", 2, "rdb_bgsave_in_progress", 1),
			"rdb", true,
		},
		"counted, not the latest": {
			numbers("total_forks", 2), numbers("total_forks", 2, "latest_fork_usec", 0), "",
			false,
		},
		"full resync": {numbers("total_forks", 2), numbers("total_forks", 3, "sync_full", 1,
			"rdb_bgsave_in_progress", 1), "replication", true},
		"before 6.2": {
			numbers(), numbers("latest_fork_usec", 120, "aof_rewrite_in_progress", 1),
			"aof-rewrite", true,
		},
		"before 6.2, same time": {numbers("rdb_last_save_time", 5), numbers("rdb_last_save_time", 9), "rdb", true},
		"SAVE": {numbers("rdb_last_save_time", 5), numbers("rdb_last_save_time", 9,
			"cmdstat_save.calls", 1), "", false},
		"end of an older child": {
			numbers("rdb_last_save_time", 5, "rdb_bgsave_in_progress", 1),
			numbers("rdb_last_save_time", 9), "", false,
		},
		"module": {numbers("total_forks", 2), numbers("total_forks", 3, "module_fork_in_progress", 1), "module", true},
	} {
		rec := recording.New()
		c := changes{sink: rec}
		c.add(at(1), tt.before)
		c.add(at(2), tt.after)
		forks := rec.EventsOf(source, "", recording.KindFork)
		if (len(forks) == 1) != tt.forked {
			t.Errorf("%s: %v", name, forks)
		} else if tt.forked && recording.DetailOf[recording.ForkDetail](forks[0]).Why != tt.why {
			t.Errorf("%s: %v", name, forks[0])
		}
	}
}

func TestRestartByUptime(t *testing.T) {
	rec := recording.New()
	c := changes{sink: rec}
	before, after := numbers("uptime_in_seconds", 1000), numbers("uptime_in_seconds", 3)
	delete(before.text, "run_id")
	c.add(at(50), before)
	if !c.add(at(60), after) || rec.Events[0].TimeNs != at(60).done-3*sec {
		t.Errorf("%+v", rec.Events)
	}
}

func TestOwnCost(t *testing.T) {
	o := newOwnCost()
	stats := func(pairs ...any) info { return numbers(pairs...) }
	o.measure(stats("cmdstat_info.calls", 10, "cmdstat_info.usec", 1000))
	round := [][]string{{"INFO", "all"}, {"SLOWLOG", "GET", "1"}}
	o.used(round, time.Millisecond)
	// Another client's INFO took 500 µs, ours 100: each is charged the mean. SLOWLOG is counted by its container before
	// 7.0.
	if got := o.measure(stats("cmdstat_info.calls", 12, "cmdstat_info.usec", 1600, "cmdstat_slowlog.calls", 1,
		"cmdstat_slowlog.usec", 7)); got != 307*time.Microsecond {
		t.Errorf("%v", got)
	}
	o.used(round, time.Millisecond)
	if got := o.estimate(); got != 307*time.Microsecond {
		t.Errorf("estimate %v", got)
	}
	// After a RESETSTAT the means hold.
	if got := o.measure(stats("cmdstat_info.calls", 1, "cmdstat_info.usec", 50)); got != 307*time.Microsecond ||
		o.total != 614*time.Microsecond {
		t.Errorf("%v %v", got, o.total)
	}
	// Without commandstats the time of the call is the bound.
	o = newOwnCost()
	o.used(round, time.Millisecond)
	if got := o.measure(numbers()); got != time.Millisecond {
		t.Errorf("%v", got)
	}
}

// TestPollsAreNotKeptApartByOneWait: that the server waited for a CPU once makes its next poll no later than
// unsureRound; that it takes long each time does.
func TestPollsAreNotKeptApartByOneWait(t *testing.T) {
	w := &watch{Options: Options{Every: time.Second}, cost: newOwnCost(), budget: budget{share: defaultBudget}}
	calls, usec := 1, 100
	poll := func(took time.Duration) time.Duration {
		w.cost.used([][]string{{"INFO"}}, time.Second)
		calls, usec = calls+1, usec+int(took/time.Microsecond)
		w.cost.measure(numbers("cmdstat_info.calls", calls, "cmdstat_info.usec", usec))
		cost, sure := w.cost.leastOf([][]string{{"INFO"}})
		return w.between(cost, sure)
	}
	w.cost.measure(numbers("cmdstat_info.calls", calls, "cmdstat_info.usec", usec))
	for i, c := range []struct{ took, want time.Duration }{
		{100 * time.Millisecond, unsureRound},
		{200 * time.Microsecond, time.Second},
		{100 * time.Millisecond, time.Second},
		{20 * time.Millisecond, time.Second},
		{20 * time.Millisecond, time.Second},
		{20 * time.Millisecond, 20 * time.Second},
	} {
		if got := poll(c.took); got != c.want {
			t.Errorf("after poll %d, which took %v: %v to the next, want %v", i, c.took, got, c.want)
		}
	}
}

func TestBudget(t *testing.T) {
	b := budget{share: 0.001, startNs: 100 * sec}
	if b.take(100*sec, 6*time.Millisecond) || !b.take(100*sec, 4*time.Millisecond) || b.take(100*sec,
		4*time.Millisecond) || !b.take(103*sec, 4*time.Millisecond) {
		t.Error("credit")
	}
	b.charge(6 * time.Millisecond)
	if b.take(101*sec, time.Microsecond) || !b.take(102*sec, time.Millisecond) {
		t.Error("charged")
	}
	if b.take(1000*sec, 11*time.Millisecond) || !b.never(11*time.Millisecond) || b.never(10*time.Millisecond) {
		t.Error("a long command")
	}
	for cost, want := range map[time.Duration]time.Duration{
		0: time.Second, 500 * time.Microsecond: time.Second,
		18 * time.Millisecond: 18 * time.Second, time.Second: longestRound,
	} {
		if got := b.interval(time.Second, cost); got != want {
			t.Errorf("%v: %v", cost, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	var reported []recording.BlindSpot
	r := refusals{
		refused: map[string]bool{}, grant: target.Target{User: "ops"}.Grant,
		emit: func(b recording.BlindSpot) { reported = append(reported, b) },
	}
	reply := func(text string) error { return resp.Value{Kind: resp.Error, Str: []byte(text)}.Err() }
	r.check("INFO", reply("LOADING x"))
	r.check("INFO", nil)
	if len(reported) != 0 || !r.allows("INFO") {
		t.Error(reported)
	}
	r.check("CLIENT LIST", reply("NOPERM x"))
	r.check("CLIENT LIST", reply("NOPERM x"))
	r.check("CONFIG GET", reply("ERR unknown command"))
	if len(reported) != 2 || r.allows("CLIENT LIST") || reported[0].Enable != "ACL SETUSER ops +client|list" {
		t.Error(reported)
	}
}

// TestSamplerIsBounded: a server may give other names at each poll.
func TestSamplerIsBounded(t *testing.T) {
	rec := recording.New()
	s := sampler{sink: rec, subject: "n"}
	for poll := range 4 {
		fields := []field{{"kept", float64(poll)}}
		for i := range maxInfoFields - 1 {
			fields = append(fields, field{fmt.Sprintf("poll_%d_name_%d", poll, i), 1})
		}
		s.poll(at(float64(poll)), fields, false)
	}
	if len(s.last) > maxNames || len(s.written) > maxNames || !s.omitted {
		t.Errorf("%d and %d names are kept; omitted: %v", len(s.last), len(s.written), s.omitted)
	}
	rec.Index()
	if got := rec.Series(source, "n", "kept"); len(got) == 0 || got[len(got)-1].Value != 3 {
		t.Errorf("a name that was there from the start: %v", got)
	}
}

func TestConfigured(t *testing.T) {
	of := func(numbers map[string]float64) info { return info{numbers: numbers} }
	const all, get, set = "cmdstat_config.calls", "cmdstat_config|get.calls", "cmdstat_config|set.calls"
	for name, c := range map[string]struct {
		prev, in map[string]float64
		own      int
		want     bool
	}{
		"only read":            {map[string]float64{get: 40}, map[string]float64{get: 90}, 40, false},
		"set for the first":    {map[string]float64{get: 40}, map[string]float64{get: 40, set: 1}, 0, true},
		"set again":            {map[string]float64{get: 40, set: 1}, map[string]float64{get: 40, set: 2}, 0, true},
		"counted together":     {map[string]float64{all: 40}, map[string]float64{all: 81}, 40, true},
		"counted, and our own": {map[string]float64{all: 40}, map[string]float64{all: 80}, 40, false},
		"no commandstats":      {map[string]float64{}, map[string]float64{}, 40, false},
	} {
		if got := configured(of(c.prev), of(c.in), c.own); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
