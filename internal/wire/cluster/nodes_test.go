package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const (
	id1 = "86eca8b84441bbca985fddf8d34680c5e9e6f7d3"
	id2 = "f65d67699484d47dc1899c9c8a7a7576c032cf17"
	id3 = "752bfe5a1718181d7beeaf7cfe2b2c6bc236ba2e"
	id4 = "005aab756f8209f5eb029f4c258cfccc838d7c8c"
)

// nodeLines are lines of CLUSTER NODES as the versions write them.
var nodeLines = []struct {
	name, line string
	want       Node
}{
	{
		"redis 3: no bus port", id1 + " 127.0.0.1:30001 myself,master - 0 0 1 connected 0-5460",
		Node{
			ID: id1, Host: "127.0.0.1", IP: "127.0.0.1", Port: 30001, Primary: true, Flags: []string{
				"myself",
				"master",
			}, Epoch: 1,
			LinkConnected: true, Ranges: []Range{{0, 5460}},
		},
	},
	{
		"redis 4 to 6: bus port", id4 + " 10.0.0.4:6379@16379 slave " + id1 + " 0 1426238317239 4 connected",
		Node{
			ID: id4, Host: "10.0.0.4", IP: "10.0.0.4", Port: 6379, BusPort: 16379, PrimaryID: id1,
			Flags: []string{"slave"}, Epoch: 4,
			LinkConnected: true,
		},
	},
	{
		"redis 6.2: IPv6, single slots", id1 + " ::1:21006@31006 myself,master - 0 0 1 connected 0-100 102 104",
		Node{
			ID: id1, Host: "::1", IP: "::1", Port: 21006, BusPort: 31006, Primary: true, Flags: []string{
				"myself",
				"master",
			}, Epoch: 1,
			LinkConnected: true, Ranges: []Range{{0, 100}, {102, 102}, {104, 104}},
		},
	},
	{
		"redis 6.2: own address not yet known", id1 + " :21006@31006 myself,master - 0 0 0 connected",
		Node{
			ID: id1, Port: 21006, BusPort: 31006, Primary: true, Flags: []string{"myself", "master"},
			LinkConnected: true,
		},
	},
	{
		"handshake", id2 + " ::1:21007@31007 handshake - 0 0 0 disconnected",
		Node{ID: id2, Host: "::1", IP: "::1", Port: 21007, BusPort: 31007, Flags: []string{"handshake"}},
	},
	{
		"no address", id3 + " :0@0 master,fail,noaddr - 1795236234095 1795236234095 3 disconnected",
		Node{ID: id3, Primary: true, Flags: []string{"master", "fail", "noaddr"}, Epoch: 3},
	},
	{"no flags", id3 + " :0@0 noflags - 0 0 0 disconnected", Node{ID: id3}},
	{
		"redis 7.0: hostname, migrating", id2 + " 127.0.0.1:21002@21012,host-2.example.com master - 0 1795236234095 " +
			"2 connected 5461-10922 [77->-" + id1 + "]",
		Node{
			ID: id2, Host: "127.0.0.1", IP: "127.0.0.1", Hostname: "host-2.example.com", Port: 21002, BusPort: 21012,
			Primary: true,
			Flags:   []string{"master"}, Epoch: 2, LinkConnected: true, Ranges: []Range{{5461, 10922}},
			Migrating: []Move{{77, id1}},
		},
	},
	{
		"importing", id2 + " 127.0.0.1:21002@21012 myself,master - 0 0 2 connected [77-<-" + id1 + "] [78-<-" + id1 +
			"]",
		Node{
			ID: id2, Host: "127.0.0.1", IP: "127.0.0.1", Port: 21002, BusPort: 21012, Primary: true,
			Flags: []string{"myself", "master"},
			Epoch: 2, LinkConnected: true, Importing: []Move{{77, id1}, {78, id1}},
		},
	},
	{
		"redis 7.2, valkey: pairs after an empty hostname",
		id1 + " 10.0.0.1:6379@16379,,tls-port=6390,shard-id=69bc08,new=1 slave,fail? " + id2 + " 0 0 7 disconnected",
		Node{
			ID: id1, Host: "10.0.0.1", IP: "10.0.0.1", Port: 6379, TLSPort: 6390, BusPort: 16379, ShardID: "69bc08",
			PrimaryID: id2,
			Flags:     []string{"slave", "fail?"}, Epoch: 7,
		},
	},
	{
		"a question mark for an address", id1 + " ?:6379@16379,? primary - 0 0 7 connected",
		Node{
			ID: id1, Port: 6379, BusPort: 16379, Primary: true, Flags: []string{"primary"}, Epoch: 7,
			LinkConnected: true,
		},
	},
}

func TestParseNodes(t *testing.T) {
	text := ""
	var all []Node
	for _, test := range nodeLines {
		t.Run(test.name, func(t *testing.T) {
			m, err := ParseNodes(test.line + "\n")
			if err != nil || !reflect.DeepEqual(m.Nodes, []Node{test.want}) {
				t.Errorf("got  %+v, %v\nwant %+v", m.Nodes, err, test.want)
			}
		})
		text += test.line + "\r\n"
		all = append(all, test.want)
	}
	m, err := ParseNodes(text + "\nvars currentEpoch 3 lastVoteEpoch 0\n")
	if err != nil || !reflect.DeepEqual(m.Nodes, all) {
		t.Errorf("all lines together, as in nodes.conf: %+v, %v", m.Nodes, err)
	}
	if m, err = ParseNodes(""); !errors.Is(err, ErrNoNodes) || len(m.Nodes) != 0 {
		t.Errorf("no text: %+v, %v", m, err)
	}
}

func TestParseNodesMalformed(t *testing.T) {
	for _, line := range []string{
		"hello", "ERR This instance has cluster support disabled",
		id1 + " 127.0.0.1 master - 0 0 1 connected",
		id1 + " 127.0.0.1:x master - 0 0 1 connected",
		id1 + " 127.0.0.1:65536 master - 0 0 1 connected",
		id1 + " 127.0.0.1:1@-1 master - 0 0 1 connected",
		id1 + " 127.0.0.1:1@1,,tls-port=x master - 0 0 1 connected",
		id1 + " 127.0.0.1:1@1 master - 0 0 -1 connected",
		id1 + " 127.0.0.1:1@1 master - 0 0 1",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected 16384",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected 5-4",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected 1-",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected [1]",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected [1->-x",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected [1->-]",
		id1 + " 127.0.0.1:1@1 master - 0 0 1 connected [99999-<-x]",
	} {
		_, err := ParseNodes(nodeLines[0].line + "\n" + line + "\n")
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "line 2 of CLUSTER NODES") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestParseNodesTooLarge(t *testing.T) {
	var many strings.Builder
	for i := range maxNodes + 1 {
		fmt.Fprintf(&many, "%d 10.0.0.1:1@1 slave x 0 0 1 connected\n", i)
	}
	line := "x 10.0.0.1:1@1 master - 0 0 1 connected"
	for name, text := range map[string]string{
		"nodes":  many.String(),
		"line":   line + strings.Repeat(" 0-16383", maxLineBytes/8),
		"ranges": strings.Repeat(line+strings.Repeat(" 0-16383", 1000)+"\n", 17),
		"text":   strings.Repeat("\n", maxTextBytes+1),
	} {
		if m, err := ParseNodes(text); !errors.Is(err, ErrTooLarge) || len(m.Nodes) != 0 {
			t.Errorf("%s: %d nodes, %v", name, len(m.Nodes), err)
		}
	}
}
