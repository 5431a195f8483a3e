package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
)

// newer is one of the newest servers, which have more to say.
func newer(t *testing.T, name servers.Name) servers.Binary {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := cache.Get(t.Context(), name, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCommandlog: also of a server that does not show its settings, which is asked whether it has the command.
func TestCommandlog(t *testing.T) {
	needs.Real(t)
	for name, args := range map[string][]string{
		"as it is":           nil,
		"without its config": {"--rename-command", "CONFIG", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, newer(t, servers.Valkey912), args...)
			c := r.client()
			c.do("SET", "before", strings.Repeat("x", 3<<20))
			w := watch(t, r.target())
			w.more(3)
			c.do("SET", "secret", strings.Repeat("x", 2<<20))
			for range 3 {
				c.do("GET", "secret")
			}
			c.do("GET", "before")
			w.more(2)
			rec := w.end()
			requests, replies := details(rec, recording.KindLargeRequest), details(rec, recording.KindLargeReply)
			if n := len(requests); n != 1 && n != 2 || requests[n-1].Command != "SET" || requests[n-1].Bytes < 2<<20 ||
				requests[n-1].ArgCount != 3 || requests[n-1].Client == "" {
				t.Errorf("requests %+v", requests)
			}
			if len(replies) != 4 || replies[0].Command != "GET" || replies[0].Bytes < 2<<20 ||
				replies[0].KeyHash != replies[2].KeyHash || replies[0].KeyHash == replies[3].KeyHash {
				t.Errorf("replies %+v", replies)
			}
			for _, e := range rec.Events {
				if strings.Contains(e.Detail, "secret") || e.Kind == recording.KindError {
					t.Errorf("%+v", e)
				}
			}
			for _, e := range slowlogOf(rec) {
				if e.Bytes != 0 || e.KeyHash != "" {
					t.Errorf("SLOWLOG %+v", e)
				}
			}
			if calls := series(rec, "cmdstat_commandlog|get.calls"); calls.Growth() < 2 {
				t.Errorf("COMMANDLOG GET: %v", calls)
			}
		})
	}
}

func details(rec *recording.Recording, kind string) (out []recording.SlowlogDetail) {
	for _, e := range rec.EventsOf(recording.SourceServer, node, kind) {
		out = append(out, recording.DetailOf[recording.SlowlogDetail](e))
	}
	return out
}

func slowlogOf(rec *recording.Recording) []recording.SlowlogDetail {
	return details(rec, recording.KindSlowlog)
}

// TestNewerForbidden: what a user may not ask for is said, with what gives the right, and tried once.
func TestNewerForbidden(t *testing.T) {
	needs.Real(t)
	r := start(t, newer(t, servers.Valkey912), "--cluster-enabled", "yes", "--cluster-slot-stats-enabled", "yes")
	c := r.client()
	allSlots(t, c)
	c.do("ACL", "SETUSER", "watcher", "on", ">pw", "+@all", "-commandlog|get", "-cluster|slot-stats")
	to := r.target()
	to.User, to.Password = "watcher", "pw"
	w := watch(t, to)
	w.more(4)
	rec := w.end()
	spots := blindSpots(t, rec)
	for what, rights := range map[string]string{
		"large requests and replies by command (COMMANDLOG)":                     "+commandlog|get",
		"which slots of the cluster take the server's time (CLUSTER SLOT-STATS)": "+cluster|slot-stats",
	} {
		if b := spots[what]; !strings.Contains(b.Enable, rights) || !strings.Contains(b.Why, "NOPERM") {
			t.Errorf("%s: %+v", what, b)
		}
	}
	for stat, most := range map[string]float64{"commandlog|get": 2, "cluster|slot-stats": 1} { // there are two logs
		if n, _ := series(rec, "cmdstat_"+stat+".rejected_calls").Last(); n > most {
			t.Errorf("%s was tried %v times", stat, n)
		}
	}
}

func allSlots(t *testing.T, c *client) {
	t.Helper()
	c.do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	await.Until(t, "the cluster is up", func() bool {
		return strings.Contains(c.do("CLUSTER", "INFO").Text(), "cluster_state:ok")
	})
}

func TestSlotStats(t *testing.T) {
	needs.Real(t)
	for _, name := range []servers.Name{servers.Valkey912, servers.Redis823} {
		t.Run(string(name), func(t *testing.T) {
			r := start(t, newer(t, name), "--cluster-enabled", "yes", "--cluster-slot-stats-enabled", "yes")
			c := r.client()
			allSlots(t, c)
			for i := range 1000 {
				c.do("SET", fmt.Sprintf("key:%d", i), "v")
			}
			hot := func() {
				for range 500 {
					c.do("SINTERCARD", "2", "{hot}a", "{hot}b")
				}
			}
			for i := range 2000 {
				c.do("SADD", "{hot}a", fmt.Sprint(i))
				c.do("SADD", "{hot}b", fmt.Sprint(i+1000))
			}
			w := watch(t, r.target())
			w.more(4)
			hot()
			rec := w.end()
			body, ok := rec.SnapshotOf(recording.SourceServer, node, recording.SnapshotSlots)
			var got recording.SlotStats
			if !ok || json.Unmarshal([]byte(body.Body), &got) != nil {
				t.Fatalf("snapshot %v %s", ok, body.Body)
			}
			if got.Slots != 16384 || len(got.Busiest) == 0 || got.Busiest[0].Slot != int(cluster.Slot([]byte("hot"))) ||
				got.Busiest[0].Keys != 2 || got.Busiest[0].CPUUsec*2 < got.CPUUsec || got.Ns <= 0 {
				t.Errorf("%s", body.Body)
			}
			if len(body.Body) > 4096 {
				t.Errorf("the snapshot has %d bytes", len(body.Body))
			}
		})
	}
}

// TestSlotStatsOff: a server that counts no slots says how it would, and is not asked for them.
func TestSlotStatsOff(t *testing.T) {
	needs.Real(t)
	r := start(t, newer(t, servers.Valkey912), "--cluster-enabled", "yes")
	allSlots(t, r.client())
	w := watch(t, r.target())
	w.more(4)
	rec := w.end()
	b := blindSpots(t, rec)["which slots of the cluster take the server's time (CLUSTER SLOT-STATS)"]
	if b.Enable != "CONFIG SET cluster-slot-stats-enabled yes" {
		t.Errorf("%+v", b)
	}
	if calls := series(rec, "cmdstat_cluster|slot-stats.calls"); len(calls) > 0 {
		t.Errorf("it was asked: %v", calls)
	}
}
