package server_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// fake is a server that says what a test has it say, for what real ones cannot be made to do.
func fake(t *testing.T, reply func(command string) string) (target.Target, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := resp.NewReader(c, resp.Limits{})
				for {
					v, err := r.Read()
					if err != nil {
						return
					}
					var words []string
					for _, e := range v.Elems {
						words = append(words, e.Text())
					}
					asked.Add(1)
					text := reply(strings.Join(words, " "))
					if text == "" {
						return
					}
					c.Write([]byte(text))
				}
			}()
		}
	}()
	to, err := target.Parse(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return to, &asked
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func TestManyClientsAreNotListed(t *testing.T) {
	var lists atomic.Int64
	to, _ := fake(t, func(command string) string {
		switch {
		case command == "INFO all":
			return bulk("connected_clients:100000\r\ncluster_enabled:1\r\n")
		case command == "CLUSTER INFO":
			return bulk("cluster_known_nodes:5000\r\ncluster_state:ok\r\n")
		case command == "CLIENT LIST" || command == "CLUSTER NODES":
			lists.Add(1)
		case strings.HasPrefix(command, "SLOWLOG") || strings.HasPrefix(command, "LATENCY") ||
			strings.HasPrefix(command, "CONFIG"):
			return "*0\r\n"
		}
		return "+OK\r\n"
	})
	w := watch(t, to)
	w.more(3)
	spots := blindSpots(t, w.end())
	if lists.Load() != 0 || len(spots) != 2 {
		t.Errorf("%d lists, %v", lists.Load(), spots)
	}
}

func TestExpensiveInfoIsAskedLess(t *testing.T) {
	var infos atomic.Int64
	to, _ := fake(t, func(command string) string {
		switch {
		case command == "INFO all":
			n := infos.Add(1)
			time.Sleep(2 * time.Millisecond) // it is charged no more than its calls took
			return bulk(fmt.Sprintf("cmdstat_info:calls=%d,usec=%d,usec_per_call=2000.00\r\n", n, 2000*n))
		case strings.HasPrefix(command, "CLIENT LIST"):
			return bulk("")
		}
		return "*0\r\n"
	})
	w := watch(t, to, func(o *server.Options) { o.Budget, o.Every = 0.0001, 10*time.Millisecond })
	w.more(2)
	time.Sleep(500 * time.Millisecond) // not for a state: nothing must happen
	w.end()
	if n := infos.Load(); n > 4 { // the first two, the third by the clock, the last one
		t.Errorf("%d times", n)
	}
}

func TestPeerThatClosesAtInfo(t *testing.T) {
	to, asked := fake(t, func(command string) string {
		if strings.HasPrefix(command, "INFO") {
			return ""
		}
		return "+OK\r\n"
	})
	w := watch(t, to)
	w.event(recording.KindBlindSpot)
	before := asked.Load()
	rec := w.end()
	if n := asked.Load(); n != before {
		t.Errorf("asked %d times after giving up", n-before)
	}
	if spots := blindSpots(t, rec); len(spots) != 1 {
		t.Error(spots)
	}
}

func TestLoadingServer(t *testing.T) {
	r := start(t, redis70(t))
	c := r.client()
	c.fill(3000)
	c.do("SAVE")
	r.stop()
	r.args = []string{"--key-load-delay", "300", "--loading-process-events-interval-bytes", "1024"}
	r.start()
	w := watch(t, r.target())
	until(t, "loading is seen to end", func() bool {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		s := series(w.sink.rec, "loading")
		n, _ := s.Last()
		return len(s) > 0 && n == 0
	})
	w.more(1)
	rec := w.end()
	if m, _ := series(rec, "loading").Max(); m != 1 {
		t.Skip("it loaded too fast to be seen")
	}
	if _, ok := rec.SnapshotOf(recording.SourceServer, node, server.SnapshotConfig); !ok {
		t.Error("no settings")
	}
	if spots := blindSpots(t, rec); len(spots) != 1 { // LATENCY is off
		t.Error(spots)
	}
}

// TestRESP3 holds what is seen over RESP3, where replies are maps and verbatim strings, against RESP2.
func TestRESP3(t *testing.T) {
	eachServer(t, func(t *testing.T, r *running) {
		if r.binary.Version < "6" {
			t.Skip("RESP3 came with 6.0")
		}
		var names [2][]string
		var bodies [2]map[string]int
		for i, protocol := range []int{2, 3} {
			to := r.target()
			to.Protocol = protocol
			w := watch(t, to)
			w.more(2)
			rec := w.end()
			for _, name := range rec.Names(recording.SourceServer, node, "") {
				// HELLO is counted too
				if !strings.Contains(name, "cmdstat_") && !strings.Contains(name, "percentiles") {
					names[i] = append(names[i], name)
				}
			}
			bodies[i] = map[string]int{}
			for _, s := range rec.Snapshots {
				bodies[i][s.Name] = strings.Count(s.Body, `":`)
			}
		}
		if a, b := fmt.Sprint(names[0]), fmt.Sprint(names[1]); a != b {
			t.Errorf("RESP2 %s\nRESP3 %s", a, b)
		}
		for _, name := range []string{server.SnapshotConfig, server.SnapshotInfo, server.SnapshotMemory} {
			if bodies[0][name] != bodies[1][name] || bodies[0][name] == 0 {
				t.Errorf("%s: %d parts by RESP2, %d by RESP3", name, bodies[0][name], bodies[1][name])
			}
		}
	})
}
