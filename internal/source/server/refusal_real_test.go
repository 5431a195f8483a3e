package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/session"
)

func TestForbiddenByACL(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	c := r.client()
	c.do("ACL", "SETUSER", "watcher", "on", ">pw", "+@all", "-slowlog", "-latency", "-client|list", "-config",
		"-memory", "-client|setname")
	to := r.target()
	to.User, to.Password = "watcher", "pw"
	w := watch(t, to)
	w.more(4)
	rec := w.end()
	spots := blindSpots(t, rec)
	for _, word := range []string{"SLOWLOG", "LATENCY", "CLIENT LIST", "CONFIG GET"} {
		found := false
		for what, b := range spots {
			if strings.Contains(what, word) {
				found = true
				if !strings.Contains(b.Why, "NOPERM") || !strings.Contains(b.Enable, "ACL SETUSER") {
					t.Errorf("%+v", b)
				}
			}
		}
		if !found {
			t.Errorf("no blind spot for %s: %v", word, spots)
		}
	}
	if len(spots) != 4 {
		t.Errorf("%d blind spots: %v", len(spots), spots)
	}
	// Each was tried once: the server counts what it refused.
	for _, stat := range []string{"slowlog|get", "latency|latest", "client|list", "memory|stats"} {
		if n, _ := series(rec, "cmdstat_"+stat+".rejected_calls").Last(); n > 1 {
			t.Errorf("%s was tried %v times", stat, n)
		}
	}
	if len(series(rec, "connected_clients")) == 0 {
		t.Error("INFO is allowed, but was not read")
	}
}

func TestInfoForbidden(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	c := r.client()
	c.fill(100_000)
	c.do("CONFIG", "SET", "slowlog-log-slower-than", "1000")
	c.do("ACL", "SETUSER", "watcher", "on", ">pw", "+@all", "-info")
	to := r.target()
	to.User, to.Password = "watcher", "pw"
	w := watch(t, to)
	w.more(2)
	c.do("KEYS", "x*")
	if d := recording.DetailOf[recording.SlowlogDetail](w.event(recording.KindSlowlog)); d.Command != "KEYS" {
		t.Errorf("%+v", d)
	}
	if spots := blindSpots(t, w.end()); len(spots) != 2 { // INFO, and LATENCY is off
		t.Error(spots)
	}
}

func TestRenamedCommands(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t), "--rename-command", "CONFIG", "", "--rename-command", "SLOWLOG", "hidden")
	w := watch(t, r.target())
	w.more(3)
	spots := blindSpots(t, w.end())
	if len(spots) != 2 {
		t.Error(spots)
	}
	for _, b := range spots {
		if !strings.Contains(b.Why, "unknown command") {
			t.Errorf("%+v", b)
		}
	}
}

func TestFirstConnectionRefused(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t), "--requirepass", "x")
	err := server.Watch(context.Background(), server.Options{
		Target: r.target(), Node: node, Clock: clock.New(),
		Sink: &locked{rec: recording.New()},
	})
	if !errors.Is(err, session.ErrNoAuth) {
		t.Error(err)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	r.stop()
	w := watch(t, r.target())
	w.event(recording.KindError)
	r.start()
	w.more(1)
	rec := w.end()
	if e := rec.EventsOf(recording.SourceServer, node, recording.KindError); len(e) != 1 {
		t.Errorf("%d errors for one outage: %v", len(e), e)
	}
}

func TestMaxClients(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t), "--maxclients", "1")
	c := r.client()
	// who asked whether it is up may still be there
	await.Until(t, "there is room for one client", func() bool {
		if c.do("PING").Text() == "PONG" {
			return true
		}
		c.c.Close()
		c = r.client()
		return false
	})
	w := watch(t, r.target())
	if d := recording.DetailOf[recording.ErrorDetail](w.event(recording.KindError)); !strings.Contains(d.Message,
		"maxclients") || d.Phase != "handshake" {
		t.Errorf("%+v", d)
	}
	c.c.Close()
	w.more(1)
	w.end()
}

func TestBusyScript(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t), "--lua-time-limit", "20")
	w := watch(t, r.target())
	w.more(1)
	script := r.client()
	go script.c.Write([]byte("*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n"))
	if d := recording.DetailOf[recording.ErrorDetail](w.event(recording.KindError)); d.Code != "BUSY" {
		t.Errorf("%+v", d)
	}
	r.client().do("SCRIPT", "KILL")
	start := w.polls()
	await.Until(t, "INFO answers again", func() bool { return w.polls() > start+3 })
	rec := w.end()
	for what := range blindSpots(t, rec) {
		if !strings.Contains(what, "LATENCY") {
			t.Errorf("a state that passed became a blind spot: %s", what)
		}
	}
	if s := series(rec, "cmdstat_eval.usec"); s.Growth() < 20_000 {
		t.Errorf("the script's time: %v", s)
	}
}
