package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/wiretest"
)

// watchFake watches a server that says what a test has it say. It is for a bubble, whose time it uses.
func watchFake(t *testing.T, s *wiretest.Server, change ...func(*server.Options)) *watched {
	t.Helper()
	return watchBy(s.Reached(context.Background()), t, s.Target(), change...)
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// plain answers as a server that has nothing to say.
func plain(command string) string {
	switch {
	case strings.HasPrefix(command, "INFO"):
		return bulk("connected_clients:1\r\n")
	case strings.HasPrefix(command, "CLIENT LIST"):
		return bulk("")
	case strings.HasPrefix(command, "CLIENT SETNAME"):
		return "+OK\r\n"
	}
	return "*0\r\n"
}

func TestManyClientsAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		s := wiretest.New(t, func(command string) string {
			switch {
			case command == "INFO all":
				return bulk("connected_clients:100000\r\ncluster_enabled:1\r\n")
			case command == "CLUSTER INFO":
				return bulk("cluster_known_nodes:5000\r\ncluster_state:ok\r\n")
			case command == "CLIENT LIST" || command == "CLUSTER NODES":
				lists++
			}
			return plain(command)
		})
		w := watchFake(t, s)
		w.more(3)
		if spots := blindSpots(t, w.end()); lists != 0 || len(spots) != 2 {
			t.Errorf("%d lists, %v", lists, spots)
		}
	})
}

// TestExpensiveInfoIsAskedLess: INFO that takes 2 ms of the server is asked for each 20 s with a budget of 0.0001.
func TestExpensiveInfoIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var infos atomic.Int64
		s := wiretest.New(t, func(command string) string {
			if command != "INFO all" {
				return plain(command)
			}
			n := infos.Add(1)
			<-time.After(2 * time.Millisecond) // it is charged no more than its calls took
			const line = "cmdstat_slowlog|get:calls=%d,usec=0\r\ncmdstat_latency|latest:calls=%d,usec=0\r\n"
			others := fmt.Sprintf(line, n, n)
			return bulk(fmt.Sprintf("cmdstat_info:calls=%d,usec=%d\r\n", n, 2000*n) + others)
		})
		w := watchFake(t, s, func(o *server.Options) { o.Budget, o.Every = 0.0001, 10*time.Millisecond })
		w.more(2)
		before := infos.Load()
		<-time.After(200 * time.Second)
		got := infos.Load() - before
		w.end()
		if got < 9 || got > 11 {
			t.Errorf("%d times in 200 s, want 10", got)
		}
	})
}

func TestPeerThatClosesAtInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, func(command string) string {
			if strings.HasPrefix(command, "INFO") {
				return ""
			}
			return "+OK\r\n"
		})
		w := watchFake(t, s)
		w.event(recording.KindBlindSpot)
		before := s.Asked()
		<-time.After(time.Minute)
		rec := w.end()
		if n := s.Asked(); n != before {
			t.Errorf("asked %d times after giving up", n-before)
		}
		if spots := blindSpots(t, rec); len(spots) != 1 {
			t.Error(spots)
		}
	})
}

// TestFrozenServer: a frozen server holds up neither the end of the watch, for more than two seconds, nor the poll
// after it thaws.
func TestFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, plain)
		w := watchFake(t, s)
		w.more(2)
		thaw := s.Freeze()
		const frozen = 400 * time.Millisecond
		<-time.After(frozen)
		thawed := w.clock.Now()
		thaw()
		w.more(2)
		longest := int64(0)
		for _, e := range w.sink.rec.Events {
			if e.Kind == recording.KindPoll && e.TimeNs+e.DurationNs >= thawed {
				longest = max(longest, e.DurationNs)
			}
		}
		if longest < int64(frozen-50*time.Millisecond) || longest > int64(frozen) {
			t.Errorf("the poll that was under way took %v", time.Duration(longest))
		}
		s.Freeze()
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestOutage: attempts to connect to a server that is gone get rarer, and one outage is one error.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, plain)
		w := watchFake(t, s)
		w.more(2)
		s.Stop()
		<-time.After(time.Hour)
		s.Start()
		back := w.clock.Now()
		w.more(1)
		if took := time.Duration(w.clock.Now() - back); took > 3*time.Second {
			t.Errorf("a server that is back was polled after %v", took)
		}
		// the command that was broken off, and the attempts
		if e := w.end().EventsOf(recording.SourceServer, node, recording.KindError); len(e) > 2 {
			t.Errorf("%d errors for one outage: %v", len(e), e)
		}
	})
}
