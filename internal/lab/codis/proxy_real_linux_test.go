package codis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/codis"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// start starts servers and a proxy over them.
func start(t *testing.T, count int) (addr string, all []*fleet.Instance) {
	t.Helper()
	var addrs []string
	for range count {
		s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
		all, addrs = append(all, s), append(addrs, s.Addr)
	}
	p, err := codis.New(addrs)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), all
}

func TestCommands(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	addr, all := start(t, 2)
	c := dial(t, addr)
	for _, tt := range []struct{ command, want string }{
		{"MSET a 1 b 2 c 3 d 4 e 5", "OK"},
		{"MGET e d absent b a", "[5 4 nil 2 1]"},
		{"MGET a", "[1]"},
		{"GET absent", "nil"},
		{"LPOP absent 2", "nil"},
		{"EXISTS a b absent", "2"},
		{"DEL a b absent", "2"},
		{"MSET a", "ERR wrong number of arguments for 'mset' command"}, // of the server
		{"MSET a 1 b", "ERR handle request, wrong number of arguments for 'MSET'"},
		{"SELECT 0", "OK"},
		{"SELECT 1", "ERR handle request, the stand-in has database 0 alone"},
		{"KEYS *", "ERR handle request, command 'KEYS' is not allowed"},
		{"HELLO 3", "ERR handle request, command 'HELLO' is not allowed"},
		{"GET", "ERR handle request, command 'GET' has no key"},
		{"PING", "PONG"},
		{"EVAL return{KEYS[1]} 1 k", "[k]"},
		{"INCR c", "4"},
		{"LPUSH c 1", "WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"SLOTSMIGRATE 5-4 " + all[0].Addr, `ERR handle request, "5-4" is no range of slots: give one such as ` +
			"0-511, up to 1023"},
		{"SLOTSMIGRATE 0 127.0.0.1:1", `ERR handle request, "127.0.0.1:1" is no server of this proxy; give one of: ` +
			all[0].Addr + ", " + all[1].Addr},
	} {
		if got, err := c.do(strings.Fields(tt.command)...); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.command, got, err, tt.want)
		}
	}
	for n := range 100 { // of few keys, a server could have none
		if got, err := c.do("SET", "key:"+strconv.Itoa(n), "1"); err != nil || got != "OK" {
			t.Errorf("SET: %q, %v", got, err)
		}
	}
	for _, s := range all {
		if n, err := s.Do(t.Context(), "DBSIZE"); err != nil || n == int64(0) {
			t.Errorf("%s has %v keys, %v", s.Addr, n, err)
		}
	}
}

// TestPipeline: replies come in the order of the requests, from whichever server, and whole.
func TestPipeline(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	addr, _ := start(t, 2)
	c := dial(t, addr)
	const count = 20_000
	var sent sync.WaitGroup
	sent.Go(func() {
		var wire []byte
		for n := range count {
			wire = resp.AppendCommand(wire, "SET", "k"+strconv.Itoa(n), strings.Repeat("x", n%3000), "GET")
		}
		if _, err := c.Write(append(wire, resp.AppendCommand(nil, "GETRANGE", "k2999", "0", "-1")...)); err != nil {
			t.Error(err)
		}
	})
	for n := range count {
		if v, err := c.in.Read(); err != nil || !v.IsNull() {
			t.Fatalf("reply %d: %+v, %v", n, v, err)
		}
	}
	if v, err := c.in.Read(); err != nil || len(v.Str) != 2999 {
		t.Errorf("%d bytes, %v", len(v.Str), err)
	}
	sent.Wait()
}

// count sends INCR of keys in pipelines until ctx ends. It returns how many had a number for a reply.
func (c client) count(ctx context.Context, keys int) (counted int, err error) {
	const pipeline = 500
	for ctx.Err() == nil {
		var wire []byte
		for n := range pipeline {
			wire = resp.AppendCommand(wire, "INCR", "key:"+strconv.Itoa(n%keys))
		}
		if _, err := c.Write(wire); err != nil {
			return counted, err
		}
		for range pipeline {
			v, err := c.in.Read()
			if err == nil && v.Kind != resp.Integer {
				err = fmt.Errorf("reply %q", v.Text())
			}
			if err != nil {
				return counted, err
			}
			counted++
		}
	}
	return counted, nil
}

// TestMigrationUnderLoad: slots move back and forth while clients count in their keys. No call fails and no increment
// is lost, though each key is on one server at a time only.
func TestMigrationUnderLoad(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	addr, all := start(t, 2)
	const keys, clients, moves = 50, 4, 20
	ctx, cancel := context.WithCancel(t.Context())
	var counted [clients]int
	var load sync.WaitGroup
	for k := range clients {
		c := dial(t, addr)
		load.Go(func() {
			var err error
			if counted[k], err = c.count(ctx, keys); err != nil {
				t.Errorf("INCR: %v", err)
			}
		})
	}
	for n := range moves {
		to := all[(n+1)%2].Addr
		if _, err := codis.Migrate(t.Context(), addr, codis.Range{First: 0, Last: codis.Slots - 1}, to); err != nil {
			t.Fatal(err)
		}
		owners, err := codis.Owners(t.Context(), addr)
		if err != nil || len(owners) != 1 || owners[0] != (codis.Owner{Slots: codis.Range{Last: 1023}, Server: to}) {
			t.Fatalf("%v, %v", owners, err)
		}
	}
	cancel()
	load.Wait()
	want, got := 0, 0
	for _, n := range counted {
		want += n
	}
	c := dial(t, addr)
	for n := range keys {
		text, err := c.do("GET", "key:"+strconv.Itoa(n))
		value, notNumber := strconv.Atoi(text)
		if err != nil || notNumber != nil && text != "nil" {
			t.Errorf("%q, %v", text, err)
		}
		got += value
	}
	if got != want || want < keys {
		t.Errorf("%d increments are there of %d", got, want)
	}
	for k, s := range all {
		if n, _ := s.Do(t.Context(), "DBSIZE"); (n == int64(0)) != (k == 1) {
			t.Errorf("%s has %v keys", s.Addr, n)
		}
	}
}

// TestCallMigratesItsKey: a call in a slot that migrates has its key moved first, by MIGRATE on the connection of the
// calls.
func TestCallMigratesItsKey(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	addr, all := start(t, 2)
	c := dial(t, addr)
	if got, err := c.do("SET", "{}key", "value"); err != nil || got != "OK" { // slot 0
		t.Fatal(got, err)
	}
	// Without SCAN the proxy finds no keys: the slot stays open, and only calls move its keys.
	if got, err := all[0].Do(t.Context(), "ACL", "SETUSER", "default", "-scan"); err != nil {
		t.Fatal(got, err)
	}
	_, err := codis.Migrate(t.Context(), addr, codis.Range{First: 0, Last: 1}, all[1].Addr)
	if err == nil || !strings.Contains(err.Error(), "SCAN of "+all[0].Addr) {
		t.Fatalf("Migrate: %v", err)
	}
	if n, _ := all[1].Do(t.Context(), "DBSIZE"); n != int64(0) {
		t.Fatalf("%v keys have moved", n)
	}
	owners, err := codis.Owners(t.Context(), addr)
	if err != nil || len(owners) != 3 || owners[0].From != all[0].Addr || owners[0].Server != all[1].Addr {
		t.Errorf("%v, %v", owners, err)
	}
	if got, err := c.do("GET", "{}key"); err != nil || got != "value" {
		t.Errorf("GET: %q, %v", got, err)
	}
	if n, _ := all[1].Do(t.Context(), "DBSIZE"); n != int64(1) {
		t.Errorf("%v keys have moved", n)
	}
	stats, err := all[0].Do(t.Context(), "INFO", "commandstats")
	if err != nil || !strings.Contains(fmt.Sprint(stats), "cmdstat_migrate:calls=1,") {
		t.Errorf("%v, %v", stats, err)
	}
	_, err = codis.Migrate(t.Context(), addr, codis.Range{First: 0, Last: 1}, all[0].Addr)
	if err == nil || !strings.Contains(err.Error(), "is not finished") {
		t.Errorf("to where it comes from: %v", err)
	}
	if got, err := all[0].Do(t.Context(), "ACL", "SETUSER", "default", "+scan"); err != nil {
		t.Fatal(got, err)
	}
	if _, err := codis.Migrate(t.Context(), addr, codis.Range{First: 0, Last: 1}, all[1].Addr); err != nil {
		t.Error(err)
	}
}

// TestServerGone: calls for a server that has ended fail at once, those for others do not, and it is used again.
func TestServerGone(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	addr, all := start(t, 2)
	c := dial(t, addr)
	if err := all[0].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := c.do("GET", "{}a"); err != nil || !strings.HasPrefix(got, "ERR handle response, ") {
		t.Errorf("%q, %v", got, err)
	}
	other := "a" // slot 579
	if got, err := c.do("GET", other); err != nil || got != "nil" {
		t.Errorf("the other server: %q, %v", got, err)
	}
	if err := all[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := c.do("GET", "{}a"); err != nil || got != "nil" {
		t.Errorf("it is back: %q, %v", got, err)
	}
}

func TestNotTheProxy(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	if _, err := codis.Owners(t.Context(), s.Addr); !errors.Is(err, codis.ErrNotProxy) {
		t.Errorf("a server: %v", err)
	}
	if _, err := codis.Owners(t.Context(), "127.0.0.1:1"); !errors.Is(err, target.ErrRefused) {
		t.Errorf("nobody: %v", err)
	}
	for name, addrs := range map[string][]string{"none": nil, "no port": {"a"}, "twice": {"a:1", "a:1"}} {
		if _, err := codis.New(addrs); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
