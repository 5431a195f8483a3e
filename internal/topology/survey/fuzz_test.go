package survey

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

const linksReply = "*2\r\n*12\r\n$9\r\ndirection\r\n$2\r\nto\r\n$4\r\nnode\r\n$2\r\nab\r\n$11\r\ncreate-time\r\n" +
	":1795236234095\r\n$6\r\nevents\r\n$2\r\nrw\r\n" +
	"$21\r\nsend-buffer-allocated\r\n:4512\r\n$16\r\nsend-buffer-used\r\n:12\r\n%1\r\n$9\r\ndirection\r\n$4\r\nfrom\r\n"

const slowReply = "*3\r\n*6\r\n:14\r\n:1795236234\r\n:12345\r\n*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n$14\r\n" +
	"10.0.0.7:41234\r\n$30\r\nlettuce#ClusterTopologyRefresh\r\n" +
	"*6\r\n:13\r\n:1795236230\r\n:99\r\n*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n:1\r\n"

func value(t testing.TB, wire string) resp.Value {
	t.Helper()
	v, err := resp.NewReader(strings.NewReader(wire), resp.Limits{}).Read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseLinks(t *testing.T) {
	links, err := parseLinks(value(t, linksReply))
	want := Link{
		NodeID: "ab", Outgoing: true, CreatedAt: time.UnixMilli(1795236234095), BufferBytes: 4512,
		BufferUsedBytes: 12,
	}
	if err != nil || len(links) != 2 || links[0] != want || links[1] != (Link{}) {
		t.Errorf("%+v, %v", links, err)
	}
	for _, wire := range []string{"+OK\r\n", "-ERR unknown subcommand\r\n", ":1\r\n"} {
		if links, err := parseLinks(value(t, wire)); err == nil {
			t.Errorf("%q: %+v", wire, links)
		}
	}
}

func TestParseSlowCalls(t *testing.T) {
	calls := parseSlowCalls(value(t, slowReply))
	want := SlowCall{
		At: time.Unix(1795236234, 0), Took: 12345 * time.Microsecond, Command: "cluster|nodes",
		Addr: "10.0.0.7:41234", Name: "lettuce#ClusterTopologyRefresh",
	}
	if len(calls) != 1 || calls[0] != want {
		t.Errorf("%+v", calls)
	}
}

// FuzzReplies feeds any RESP value to the parsers of replies: what they keep is bounded.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(linksReply))
	f.Add([]byte(slowReply))
	f.Fuzz(func(t *testing.T, wire []byte) {
		v, err := resp.NewReader(bytes.NewReader(wire), resp.Limits{MaxElements: 4096}).Read()
		if err != nil {
			return
		}
		if links, err := parseLinks(v); err != nil && len(links) > 0 {
			t.Fatal("both links and an error")
		}
		for _, c := range parseSlowCalls(v) {
			if c.Took < 0 || c.Took > 25*time.Hour {
				t.Fatalf("%v", c.Took)
			}
		}
	})
}

// FuzzAnalyse feeds any map, INFO and CLIENT LIST to the analysis: it must make a report of whatever a server says.
func FuzzAnalyse(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add(id+" 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-100 [7->-"+strings.Repeat("b", 40)+"]\n",
		"redis_version:6.0.16\r\nused_cpu_user:1\r\n", "id=1 addr=1.2.3.4:5 age=9 idle=0 flags=N cmd=cluster|nodes "+
			"name=x")
	f.Fuzz(func(t *testing.T, nodes, info, clients string) {
		m, err := cluster.ParseNodes(nodes)
		if err != nil {
			return
		}
		start := time.Unix(1795236234, 0)
		fields := server.ParseInfo(info)
		l := &NodeState{
			Addr: "a:1", HasMap: true, Source: cost.Nodes, Map: m, InfoFields: fields, Begin: fields, End: fields,
			Server: fields.Product(), Sent: map[string]int{"info": 1},
			Measured: []cost.Measured{{Command: cost.Nodes, PerCall: time.Millisecond, Calls: 3, Alone: true}},
		}
		for k := range 3 {
			l.Ticks = append(l.Ticks, Tick{
				At: start.Add(time.Duration(k) * time.Second), Stats: fields,
				Clients: server.ParseClients(clients), HasClients: true,
			})
		}
		r := Analyse(&Survey{Start: start, Window: 2 * time.Second, Nodes: []*NodeState{l}}, Assumptions{})
		if r.Map.SlotsCovered < 0 || r.Map.SlotsCovered > 16384 || len(r.Views) != 1 || r.Verdict == "" {
			t.Fatalf("%+v", r.Map)
		}
		for _, w := range r.Options {
			if w.Saves < 0 || w.Saves > 1 {
				t.Fatalf("%+v", w)
			}
		}
	})
}
