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
	if m, err = ParseSlots(decoded(t, "*1\r\n*2\r\n:0\r\n:1\r\n")); !errors.Is(err, ErrNoNodes) || len(m.Nodes) != 0 {
		t.Errorf("slots without nodes: %+v, %v", m, err)
	}
}

func TestRepliesMalformed(t *testing.T) {
	for _, test := range []struct{ name, wire string }{
		{"null", "_\r\n"},
		{"no array", "+OK\r\n"},
		{"entry is no array", "*1\r\n:1\r\n"},
		{"slots are no numbers", "*1\r\n*2\r\n+a\r\n+b\r\n"},
		{"slots out of bounds", "*1\r\n*2\r\n:0\r\n:16384\r\n"},
		{"slots reversed", "*1\r\n*2\r\n:2\r\n:1\r\n"},
		{"node is no array", "*1\r\n*3\r\n:0\r\n:1\r\n+x\r\n"},
		{"port", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n+h\r\n:70000\r\n"},
		{"port of a replica", "*1\r\n*4\r\n:0\r\n:1\r\n*2\r\n+h\r\n:7000\r\n*2\r\n+h\r\n+x\r\n"},
	} {
		if m, err := ParseSlots(decoded(t, test.wire)); !errors.Is(err, ErrMalformed) || len(m.Nodes) != 0 {
			t.Errorf("%s: %+v, %v", test.name, m, err)
		}
	}
	var refusal *resp.ServerError
	_, err := ParseSlots(decoded(t, "-ERR This instance has cluster support disabled\r\n"))
	if !errors.As(err, &refusal) || refusal.Code != "ERR" {
		t.Errorf("an error reply became %v", err)
	}
}

func TestRepliesTooLarge(t *testing.T) {
	one := "*3\r\n:0\r\n:1\r\n*3\r\n+h\r\n:1\r\n+id\r\n"
	nodes := bytes.NewBufferString(fmt.Sprintf("*1\r\n*%d\r\n:0\r\n:1\r\n", maxNodes+3))
	for i := range maxNodes + 1 {
		fmt.Fprintf(nodes, "*2\r\n+h%d\r\n:1\r\n", i)
	}
	for name, parse := range map[string]func() (Map, error){
		"nodes":  func() (Map, error) { return ParseSlots(decoded(t, nodes.String())) },
		"ranges": func() (Map, error) { return ParseSlots(decoded(t, "*16385\r\n"+strings.Repeat(one, 16385))) },
	} {
		if m, err := parse(); !errors.Is(err, ErrTooLarge) || len(m.Nodes) != 0 {
			t.Errorf("%s: %d nodes, %v", name, len(m.Nodes), err)
		}
	}
}
