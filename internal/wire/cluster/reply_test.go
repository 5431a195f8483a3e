package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

// recorded reads a reply that a Redis 7.0.15 sent, from testdata.
func recorded(t testing.TB, name string) resp.Value {
	t.Helper()
	wire, err := os.ReadFile("testdata/redis-7.0-" + name + ".resp")
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(wire))
}

func decoded(t testing.TB, wire string) resp.Value {
	t.Helper()
	v, err := resp.NewReader(strings.NewReader(wire), resp.Limits{}).Read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// threeShards is the cluster of the recordings: three primaries, of which two announce a hostname, and a replica of the
// first.
func threeShards(edit func(n *Node)) []Node {
	nodes := []Node{
		{ID: id1, Host: "127.0.0.1", IP: "127.0.0.1", Port: 21001, Primary: true, Ranges: []Range{{0, 5460}}},
		{ID: id4, Host: "127.0.0.1", IP: "127.0.0.1", Port: 21004, PrimaryID: id1},
		{
			ID: id2, Host: "127.0.0.1", IP: "127.0.0.1", Port: 21002, Primary: true, Ranges: []Range{{5461, 10922}},
			Hostname: "host-2.example.com",
		},
		{
			ID: id3, Host: "127.0.0.1", IP: "127.0.0.1", Port: 21003, Primary: true, Ranges: []Range{{10923, 16383}},
			Hostname: "host-3.example.com",
		},
	}
	for i := range nodes {
		edit(&nodes[i])
	}
	return nodes
}

func preferHostname(n *Node) {
	if n.Hostname != "" {
		n.Host = n.Hostname
	}
}

func TestParseSlotsRecorded(t *testing.T) {
	for name, edit := range map[string]func(*Node){
		"slots-resp2":            func(*Node) {},
		"slots-resp3-hostnames":  preferHostname,
		"slots-unknown-endpoint": func(n *Node) { n.Host = "" },
	} {
		m, err := ParseSlots(recorded(t, name))
		if want := threeShards(edit); err != nil || !reflect.DeepEqual(m.Nodes, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", name, m.Nodes, err, want)
		}
		if gaps := m.Uncovered(); gaps != nil {
			t.Errorf("%s: uncovered %v", name, gaps)
		}
	}
}

func TestParseShardsRecorded(t *testing.T) {
	for name, edit := range map[string]func(*Node){
		"shards-resp2-failed": func(n *Node) {
			if n.Health = "online"; n.ID == id4 {
				n.Health = "fail"
			}
		},
		"shards-resp3-hostnames": func(n *Node) { n.Health = "online"; preferHostname(n) },
	} {
		m, err := ParseShards(recorded(t, name))
		if err != nil || len(m.Nodes) != 4 {
			t.Fatalf("%s: %+v, %v", name, m, err)
		}
		for _, want := range threeShards(edit) {
			if got, _ := m.Node(want.ID); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
			}
		}
	}
}

func TestParseNodesRecorded(t *testing.T) {
	m, err := ParseNodes(recorded(t, "nodes-resp3").Text())
	if n, ok := m.Node(id1); err != nil || len(m.Nodes) != 4 || !ok || !reflect.DeepEqual(n.Migrating,
		[]Move{{77, id2}}) {
		t.Errorf("%+v, %v", m, err)
	}
	if replicas := m.Replicas(id1); len(replicas) != 1 || replicas[0].Addr() != "127.0.0.1:21004" {
		t.Errorf("replicas: %+v", replicas)
	}
}

func TestParseSlotsOlder(t *testing.T) {
	const entry = "*%d\r\n:%d\r\n:%d\r\n"
	const node = "*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" // Redis 3: no id
	v := decoded(t, "*2\r\n"+fmt.Sprintf(entry+node+node, 4, 0, 99, 7000, 7001)+fmt.Sprintf(entry+node+node, 4, 200,
		299, 7000, 7001))
	m, err := ParseSlots(v)
	want := []Node{
		{Host: "127.0.0.1", IP: "127.0.0.1", Port: 7000, Primary: true, Ranges: []Range{{0, 99}, {200, 299}}},
		{Host: "127.0.0.1", IP: "127.0.0.1", Port: 7001},
	}
	if err != nil || !reflect.DeepEqual(m.Nodes, want) {
		t.Errorf("got %+v, %v; want %+v", m.Nodes, err, want)
	}
	if m, err = ParseSlots(decoded(t, "*1\r\n*2\r\n:0\r\n:1\r\n")); err != nil || len(m.Nodes) != 0 {
		t.Errorf("slots without nodes: %+v, %v", m, err)
	}
}

// After a failover the dead primary may still be listed as one; the slots are of the one that lives.
func TestParseShardsFailover(t *testing.T) {
	node := func(id, role, health string) resp.Value {
		return flat("id", id, "tls-port", "6380", "ip", "10.0.0.1", "endpoint", "?", "role", role, "health", health,
			"new", "x")
	}
	shard := func(nodes ...resp.Value) resp.Value {
		v := flat("id", "s1")
		v.Elems = append(v.Elems, text("slots"), resp.Value{Kind: resp.Array, Elems: flat("0", "9").Elems},
			text("nodes"), resp.Value{Kind: resp.Array, Elems: nodes})
		return v
	}
	reply := resp.Value{Kind: resp.Array, Elems: []resp.Value{
		shard(node("old", "master", "failed"), node("new", "primary", "online"), node("rep", "replica", "loading")),
	}}
	m, err := ParseShards(reply)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := m.Owner(5); n.ID != "new" || n.Addr() != "10.0.0.1:6380" || n.ShardID != "s1" {
		t.Errorf("owner: %+v", n)
	}
	if n, _ := m.Node("rep"); n.PrimaryID != "new" {
		t.Errorf("replica: %+v", n)
	}
	reply.Elems = []resp.Value{shard(node("rep", "replica", "online"))}
	if m, err = ParseShards(reply); err != nil || len(m.Uncovered()) != 1 {
		t.Errorf("a shard without a primary: %+v, %v", m, err)
	}
}

func text(s string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(s)} }

func flat(words ...string) resp.Value {
	v := resp.Value{Kind: resp.Array}
	for _, w := range words {
		v.Elems = append(v.Elems, text(w))
	}
	return v
}

func TestRepliesMalformed(t *testing.T) {
	type parser = func(resp.Value) (Map, error)
	for _, test := range []struct {
		name  string
		parse parser
		wire  string
	}{
		{"no array", ParseSlots, "+OK\r\n"},
		{"null", ParseShards, "_\r\n"},
		{"entry is no array", ParseSlots, "*1\r\n:1\r\n"},
		{"slots are no numbers", ParseSlots, "*1\r\n*2\r\n+a\r\n+b\r\n"},
		{"slots out of bounds", ParseSlots, "*1\r\n*2\r\n:0\r\n:16384\r\n"},
		{"slots reversed", ParseSlots, "*1\r\n*2\r\n:2\r\n:1\r\n"},
		{"node is no array", ParseSlots, "*1\r\n*3\r\n:0\r\n:1\r\n+x\r\n"},
		{"port", ParseSlots, "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n+h\r\n:70000\r\n"},
		{"port of a replica", ParseSlots, "*1\r\n*4\r\n:0\r\n:1\r\n*2\r\n+h\r\n:7000\r\n*2\r\n+h\r\n+x\r\n"},
		{"shard without nodes", ParseShards, "*1\r\n*0\r\n"},
		{"odd slots", ParseShards, "*1\r\n%2\r\n+nodes\r\n*0\r\n+slots\r\n*1\r\n:1\r\n"},
		{
			"shard's slots", ParseShards,
			"*1\r\n%2\r\n+nodes\r\n*1\r\n%2\r\n+id\r\n+a\r\n+role\r\n+master\r\n+slots\r\n*2\r\n:1\r\n+x\r\n",
		},
		{"node without id", ParseShards, "*1\r\n%1\r\n+nodes\r\n*1\r\n*0\r\n"},
		{"node's port", ParseShards, "*1\r\n%1\r\n+nodes\r\n*1\r\n%1\r\n+port\r\n:-1\r\n"},
	} {
		if m, err := test.parse(decoded(t, test.wire)); !errors.Is(err, ErrMalformed) || len(m.Nodes) != 0 {
			t.Errorf("%s: %+v, %v", test.name, m, err)
		}
	}
	for _, parse := range []parser{ParseSlots, ParseShards} {
		var refusal *resp.ServerError
		_, err := parse(decoded(t, "-ERR This instance has cluster support disabled\r\n"))
		if !errors.As(err, &refusal) || refusal.Code != "ERR" {
			t.Errorf("an error reply became %v", err)
		}
	}
}

func TestRepliesTooLarge(t *testing.T) {
	one := "*3\r\n:0\r\n:1\r\n*3\r\n+h\r\n:1\r\n+id\r\n"
	nodes := bytes.NewBufferString(fmt.Sprintf("*1\r\n*%d\r\n:0\r\n:1\r\n", maxNodes+3))
	for i := range maxNodes + 1 {
		fmt.Fprintf(nodes, "*2\r\n+h%d\r\n:1\r\n", i)
	}
	shard := "*1\r\n%2\r\n+nodes\r\n*1\r\n%2\r\n+id\r\n+a\r\n+role\r\n+master\r\n+slots\r\n"
	for name, parse := range map[string]func() (Map, error){
		"nodes":  func() (Map, error) { return ParseSlots(decoded(t, nodes.String())) },
		"ranges": func() (Map, error) { return ParseSlots(decoded(t, "*16385\r\n"+strings.Repeat(one, 16385))) },
		"shard ranges": func() (Map, error) {
			return ParseShards(decoded(t, shard+"*32770\r\n"+strings.Repeat(":1\r\n", 32770)))
		},
	} {
		if m, err := parse(); !errors.Is(err, ErrTooLarge) || len(m.Nodes) != 0 {
			t.Errorf("%s: %d nodes, %v", name, len(m.Nodes), err)
		}
	}
}
