package server

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

func TestParseInfo(t *testing.T) {
	in := parseInfo("# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\n" +
		"executable:/usr/bin/redis-server\r\nrun_id:0123456789012345678901234567890123456789\r\n" +
		"maxmemory_human:0B\r\nused_memory_peak_perc:99.8%\r\nexpired_stale_perc:1.50\r\ncurrent_fork_perc:0.00\r\n" +
		"master_replid:0000000000000000000000000000000000000000\r\nempty:\r\nno " +
		"colon\r\n:x\r\nrole:master\r\nused_cpu_sys:0.008637\r\nsecond_repl_offset:-1\r\n" +
		"slave0:ip=10.0.0.7,port=6380,state=online,offset=1234,lag=1\r\nlistener0:name=tcp,bind=*,port=1\r\n" +
		"module:name=x,ver=1\r\n" +
		"cmdstat_client|list:calls=2,usec=34,usec_per_call=17.00,rejected_calls=0,failed_calls=1\r\n" +
		"latency_percentiles_usec_get:p50=4.015,p99=5.1,p99.9=nan\r\nerrorstat_MOVED:count=3\r\n" +
		"db0:keys=10,expires=2,avg_ttl=0\r\n" +
		"db0_distrib_strings_sizes:0=1,1K=2\r\nx:0x10\r\ny:inf\r\nz:1_000\r\nrole:slave\r\n")
	for name, want := range map[string]float64{
		"expired_stale_perc": 1.5, "current_fork_perc": 0,
		"used_cpu_sys": 0.008637, "second_repl_offset": -1,
		"slave0.port": 6380, "slave0.offset": 1234, "slave0.lag": 1, "cmdstat_client|list.calls": 2,
		"cmdstat_client|list.usec":           34,
		"cmdstat_client|list.rejected_calls": 0, "cmdstat_client|list.failed_calls": 1,
		"latency_percentiles_usec_get.p50": 4.015,
		"latency_percentiles_usec_get.p99": 5.1, "errorstat_MOVED.count": 3, "db0.keys": 10, "db0.expires": 2,
		"db0.avg_ttl": 0,
	} {
		if got, ok := in.numbers[name]; !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, want)
		}
	}
	if len(in.numbers) != 17 || len(in.fields) != 17 {
		t.Errorf("%v", in.fields)
	}
	for name, want := range map[string]string{
		"redis_version": "7.0.15", "role": "slave", "slave0.ip": "10.0.0.7",
		"slave0.state": "online",
		"run_id":       "0123456789012345678901234567890123456789", "executable": "", "maxmemory_human": "",
		"x": "0x10", "z": "1_000",
	} {
		if got := in.text[name]; got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func bulk(s string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(s)} }
func num(n int64) resp.Value   { return resp.Value{Kind: resp.Integer, Int: n} }
func arr(e ...resp.Value) resp.Value {
	return resp.Value{Kind: resp.Array, Elems: e}
}

func args(words ...string) resp.Value {
	var e []resp.Value
	for _, w := range words {
		e = append(e, bulk(w))
	}
	return arr(e...)
}

func TestParseSlowlog(t *testing.T) {
	many := make([]string, 32)
	for i := range many {
		many[i] = "v"
	}
	many[0], many[31] = "mset", "... (970 more arguments)"
	long := strings.Repeat("x", 128) + "... (872 more bytes)"
	got := parseLog(arr(
		arr(num(9), num(1700000000), num(15000), args(many...), bulk("10.0.0.7:5000"), bulk("app")),
		arr(num(8), num(1700000000), num(15000), args("set", "k", long), bulk("10.0.0.7:5000"), bulk("")),
		arr(num(7), num(1700000000), num(15000), args("config", "get", "*")),
		arr(num(6), num(1700000000), num(15000), args("my data as a command", "secret")),
		arr(num(5), num(1700000000), num(15000), args("get", "nodes")),
		arr(num(4), num(1700000000), num(15000), args("cluster", "secret value")),
		arr(num(3), num(1700000000), num(15000), arr()),
		arr(num(3), num(1700000000), num(15000)), arr(), num(3), arr(num(-1), num(1), num(1), args("get")),
		arr(num(1), num(1<<62), num(1), args("get")),
	))
	want := []logEntry{
		{9, 1700000000, 15000, "MSET", 31 + 970, 4 + 30, "10.0.0.7:5000", "app", "", "v"},
		{8, 1700000000, 15000, "SET", 3, 3 + 1 + 1000, "10.0.0.7:5000", "", "", "k"},
		{7, 1700000000, 15000, "CONFIG GET", 3, 10, "", "", "", ""},
		{6, 1700000000, 15000, "UNKNOWN", 2, 26, "", "", "", "secret"},
		{5, 1700000000, 15000, "GET", 2, 8, "", "", "", "nodes"},
		{4, 1700000000, 15000, "CLUSTER", 2, 19, "", "", "", ""},
		{3, 1700000000, 15000, "UNKNOWN", 0, 0, "", "", "", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func TestParseLatency(t *testing.T) {
	// valkey 8.1 adds two elements.
	got := parseLatest(arr(arr(bulk("fork"), num(1700000000), num(12), num(30)), arr(bulk("command"), num(1700000001),
		num(5), num(5), num(1), num(2)),
		arr(bulk("two words"), num(1), num(1)), arr(bulk("x")), num(1)))
	if len(got) != 2 || got[0] != (latest{"fork", spike{1700000000, 12}}) || got[1].event != "command" {
		t.Errorf("%+v", got)
	}
	history := parseHistory(arr(arr(num(1700000000), num(12)), arr(num(-1), num(1)), arr(num(1)), bulk("x")))
	if len(history) != 1 || history[0] != (spike{1700000000, 12}) {
		t.Errorf("%+v", history)
	}
}

// Clients over a Unix socket, which have one address for the server, are told apart by the descriptor of its end.
func TestParseUnixClients(t *testing.T) {
	for line, want := range map[string]string{
		"id=3 addr=/run/r.sock:0 fd=9 name=a flags=U": "/run/r.sock:9",
		"id=3 addr=/run/r.sock:0 name=a flags=U":      "/run/r.sock:0",
		"id=3 addr=127.0.0.1:0 fd=9 name=a flags=N":   "127.0.0.1:0",
	} {
		if c := ParseClients(line); len(c) != 1 || c[0].Addr != want {
			t.Errorf("%s: %+v, want %s", line, c, want)
		}
	}
}

func TestParseClients(t *testing.T) {
	got := ParseClients("id=17 addr=127.0.0.1:48622 fd=8 name= age=3 idle=1 flags=N db=0 sub=0 psub=0 multi=-1 " +
		"qbuf=26 qbuf-free=32742 obl=0 oll=0 omem=0 events=r cmd=client\n" +
		"id=18 addr=[::1]:46498 laddr=[::1]:23005 name=slowpath-watch age=0 idle=0 flags=bP db=2 sub=4 multi=3 " +
		"qbuf=1 obl=2 oll=3 omem=4 tot-mem=37786 events=rw" +
		" cmd=cluster|nodes user=app resp=3 lib-name=jedis lib-ver=5.1.0 io-thread=0\n\nnonsense\nid=x addr=\n")
	want := []Client{
		{ID: 17, Addr: "127.0.0.1:48622", Age: 3, Idle: 1, Flags: "N", Multi: -1, Qbuf: 26, Events: "r", Cmd: "client"},
		{
			ID: 18, Addr: "[::1]:46498", Name: "slowpath-watch", Flags: "bP", DB: 2, Sub: 4, Multi: 3, Qbuf: 1, OBL: 2,
			OLL: 3, OMem: 4, TotMem: 37786,
			Events: "rw", Cmd: "cluster|nodes", User: "app", RESP: 3, LibName: "jedis", LibVer: "5.1.0", Self: true,
		},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("got %+v", got)
	}
	got[1].Self = false
	n := countClients(got)
	if n.Clients != 2 || n.Lib["jedis 5.1.0"] != 1 || n.Lib[""] != 1 || n.Host["::1"] != 1 || n.Flag["b"] != 1 ||
		n.Flag["P"] != 1 || n.Cmd["client"] != 1 {
		t.Errorf("%+v", n)
	}
}

func TestManyClients(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("id=" + strings.Repeat("1", i%18+1) + " addr=h" + strings.Repeat("x", i%600) + ":1\n")
	}
	clients := ParseClients(b.String())
	if n := countClients(clients); n.Clients != 5000 || n.Listed != maxListedClients || len(n.Host) > maxGroups+1 {
		t.Errorf("%d %d %d", n.Clients, n.Listed, len(n.Host))
	}
	if lines := strings.Count(clientLines(clients), "\n"); lines != maxListedClients {
		t.Errorf("%d lines", lines)
	}
}

func TestConfigTakesNoSecret(t *testing.T) {
	into := map[string]string{}
	readConfig(into, args("hz", "10", "requirepass", "p", "masterauth", "p", "tls-key-file-pass", "p",
		"replica-auth-pass", "p", "client-output-buffer-limit", "normal 0 0 0",
		"HASH-MAX-ZIPLIST-ENTRIES", "512", "dir", "/data", "replica-announce-ip", "x", "repl-user", "u",
		"lazyfree-lazy-user-flush", "no", "odd"))
	if len(into) != 4 || into["lazyfree-lazy-user-flush"] != "no" ||
		into["hz"] != "10" || into["hash-max-ziplist-entries"] != "512" {
		t.Errorf("%v", into)
	}
}

func TestProduct(t *testing.T) {
	for want, text := range map[string]map[string]string{
		"valkey 8.1.1":     {"redis_version": "7.2.4", "valkey_version": "8.1.1"},
		"redis 7.0.15":     {"redis_version": "7.0.15"},
		"dragonfly df-1.2": {"redis_version": "7.2.0", "dragonfly_version": "df-1.2"},
		"":                 {},
	} {
		if got := product(text); got != want {
			t.Errorf("%v is %q", text, got)
		}
	}
}

// FuzzReplies: whatever a server replies, nothing panics and what is kept is bounded.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("*1\r\n*6\r\n:1\r\n:1700000000\r\n:100\r\n*2\r\n$4\r\nkeys\r\n$1\r\n*\r\n$1\r\na\r\n$0\r\n\r\n"))
	f.Add([]byte("*1\r\n*4\r\n$4\r\nfork\r\n:1700000000\r\n:1\r\n:1\r\n"))
	f.Add([]byte("*4\r\n$2\r\nhz\r\n$2\r\n10\r\n$4\r\ndb.0\r\n*2\r\n$1\r\na\r\n:1\r\n"))
	f.Add([]byte("$30\r\nid=1 addr=a:1 name=x flags=OxS\n\r\n"))
	f.Add([]byte("$24\r\ncmdstat_get:calls=1,a=b\n\r\n"))
	f.Add([]byte("-NOPERM no\r\n"))
	f.Add([]byte("*1\r\n*2\r\n:16383\r\n*4\r\n$8\r\ncpu-usec\r\n:7\r\n$16\r\nnetwork-bytes-in\r\n:9\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := resp.NewReader(strings.NewReader(string(data)), resp.Limits{}).Read()
		if err != nil {
			return
		}
		for _, e := range parseLog(v) {
			if e.argCount < 0 || e.argBytes < 0 || e.amount < 0 || e.amount*1000 < 0 ||
				len(e.command) > 81 {
				t.Errorf("%+v", e)
			}
		}
		for _, s := range parseHistory(v) {
			if s.millis < 0 || s.millis*1e6 < 0 {
				t.Errorf("%+v", s)
			}
		}
		var s slots
		for range 2 {
			uses := slotUses{}
			uses.add(v)
			if got, ok := s.since(uses, 1); len(uses) > clusterSlots || ok && got.CPUUsec != 0 {
				t.Errorf("%d slots, %+v", len(uses), got)
			}
		}
		parseLatest(v)
		readConfig(map[string]string{}, v)
		flatten(map[string]float64{}, "", v, 0)
		_, _ = nodeAddresses(v, "1.2.3.4:5")
		text := v.Text()
		in := parseInfo(text)
		identityOf(in)
		jsonObject(in.text)
		clients := ParseClients(text)
		clientLines(clients)
		countClients(clients)
	})
}

// Masters that failed are listed apart: a replica that failed has no callers that must go there, and an address may
// have had another node before.
func TestNodeAddresses(t *testing.T) {
	line := func(id, address, flags, master, slots string) string {
		return strings.TrimSpace(id+" "+address+" "+flags+" "+master+" 0 0 1 connected "+slots) + "\n"
	}
	text := line("a", "10.0.0.1:1@11", "myself,master", "-", "0-100") + line("b", "10.0.0.1:2@12", "master,fail", "-",
		"") + line("c", "10.0.0.1:3@13", "slave,fail", "a", "") +
		line("d", "10.0.0.1:4@14", "slave", "a", "") + line("e", "10.0.0.1:4@14", "master,fail", "-", "") + line("f",
		"10.0.0.1:5@15", "master,fail?", "-", "101-200") +
		line("g", ":0@0", "master,fail,noaddr", "-", "") + line("h", "10.0.0.1:6@16", "handshake", "-", "")
	nodes, failed := nodeAddresses(resp.Value{Kind: resp.BulkString, Str: []byte(text)}, "10.0.0.1:1")
	if want := []string{"10.0.0.1:1", "10.0.0.1:4", "10.0.0.1:5"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes %v, want %v", nodes, want)
	}
	if want := []string{"10.0.0.1:2"}; !slices.Equal(failed, want) {
		t.Errorf("failed %v, want %v", failed, want)
	}
}
