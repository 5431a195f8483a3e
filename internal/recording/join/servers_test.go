package join

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// fleet is what a clients' host and the hosts of servers record of calls, each by its own clock. The servers know
// themselves by the same name.
type fleet struct {
	client  *recording.Recording
	servers []*recording.Recording
	ahead   []int64 // of the client's clock, by server
	seq     uint32
}

func newFleet(ahead ...int64) *fleet {
	f := &fleet{client: recording.New(), ahead: ahead}
	f.client.SetMeta(recording.MetaNodes, recording.Detail([]string{node(0), node(1)}))
	for k := range ahead {
		s := recording.New()
		s.SetMeta(recording.MetaHost, fmt.Sprint("redis-", k))
		s.SetMeta(recording.MetaStart, fmt.Sprint(1e18+ahead[k]))
		s.SetMeta(recording.MetaEnd, fmt.Sprint(1e18+20e9+ahead[k]))
		for key, value := range recording.NodeMetas([]string{"127.0.0.1:6379"}, map[string]recording.NodeServer{
			"127.0.0.1:6379": {Server: fmt.Sprint("redis 7.0.", k), Kind: "standalone"},
		}) {
			s.SetMeta(key, value)
		}
		s.Sample(recording.Sample{
			TimeNs: 1e18 + ahead[k], Source: recording.SourceHost, Subject: recording.SubjectMachine,
			Name: series.MachineCPUs.Name, Value: float64(k + 1),
		})
		s.Sample(recording.Sample{
			TimeNs: 1e18 + ahead[k], Source: recording.SourceHost, Subject: "127.0.0.1:6379",
			Name: series.MainRun.Name, Value: float64(k + 1),
		})
		s.Event(recording.Event{
			TimeNs: 1e18 + ahead[k] + 5e9, Source: recording.SourceHost, Subject: "process:7",
			Kind: recording.KindThrottled,
		})
		f.servers = append(f.servers, s)
	}
	return f
}

func node(server int) string { return fmt.Sprintf("10.0.0.1%d:6379", server) }

// call is one of 7 ms, of which the server has 5, that begins at a time of the client's clock.
func (f *fleet) call(server int, at int64, both bool) {
	f.seq++
	c := recording.Call{
		Source: recording.SourceTap, Conn: fmt.Sprintf("10.0.0.2:400%d", server), Op: "GET", RequestBytes: 30,
		Node: node(server), Side: recording.Client, Client: "app[7]", Seq: f.seq, IntendedNs: at, StartNs: at,
		EndNs: at + 7e6,
	}
	f.client.Call(c, recording.Segment{
		Actor: recording.Nobody, State: recording.Unexplained, FromNs: at, ToNs: at + 7e6,
	})
	if !both {
		return
	}
	c.Side, c.Node, c.Client = recording.Server, "127.0.0.1:6379", ""
	c.IntendedNs, c.StartNs, c.EndNs = at+1e6+f.ahead[server], at+1e6+f.ahead[server], at+6e6+f.ahead[server]
	f.servers[server].Call(c, recording.Segment{
		Actor: recording.Server, State: recording.Exec, FromNs: c.IntendedNs, ToNs: c.EndNs,
	})
}

// TestSeveralServers: the calls of one clients' host to two servers' hosts are joined each with its server's end, by
// clocks that are hours apart. The names are those that the clients use, and each node has what its own host saw. A
// recording without any of the calls is named, and changes nothing.
func TestSeveralServers(t *testing.T) {
	f := newFleet(3*3600e9, -7*3600e9)
	for i := range int64(10) {
		f.call(0, 1e18+i*1e9, true)
		f.call(1, 1e18+i*1e9+3e8, i != 9)
		if i < 5 {
			f.call(0, 1e18+i*1e9+5e8, true)
		}
	}
	f.client.Histogram(recording.Histogram{Second: 1e9, Source: recording.SourceTap, Node: node(0), Op: "client GET"})
	f.client.Histogram(recording.Histogram{Second: 1e9, Source: recording.SourceTap, Node: node(1), Op: "client GET"})
	f.client.ConnUse("10.0.0.2:4001", recording.ConnUse{TimeNs: 1e18 + 5, Calls: 3})
	other := newFleet(0)
	other.call(0, 1e18, true)
	other.client.Calls[0].Conn = "10.0.0.3:4000"
	rec, results, err := All([]*recording.Recording{f.client, f.servers[1], f.servers[0], other.client}, true)
	if err != nil || len(results) != 3 {
		t.Fatalf("%+v, %v", results, err)
	}
	for i, want := range []struct{ index, server, joined, fast int }{{0, 2, 15, 0}, {0, 1, 9, 1}, {3, 2, 0, 0}} {
		r := results[i]
		if r.Index != want.index || r.Server != want.server || r.Joined != want.joined || r.ClockUnknown ||
			r.Fast != want.fast || (r.Why != nil) != (want.joined == 0) {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
	}
	if !errors.Is(results[2].Why, ErrNAT) {
		t.Errorf("%v", results[2].Why)
	}
	if nodes := rec.Nodes(); fmt.Sprint(nodes) != fmt.Sprint([]string{node(0), node(1)}) {
		t.Error(nodes)
	}
	both, ids := map[string]int{}, map[int64]bool{}
	for _, c := range rec.Calls {
		ids[c.ID] = true
		if c.Side != "both" {
			continue
		}
		both[c.Node]++
		segs := rec.SegmentsOf(c.ID)
		if in(segs, recording.Network) != 2e6 || in(segs, recording.Server) != 5e6 || c.EndNs-c.IntendedNs != 7e6 {
			t.Fatalf("%+v: %+v", c, segs)
		}
		// By the clock of the first server's host, whichever served it.
		if at := c.IntendedNs - 3*3600e9 - 1e18; at < -2e6 || at > 20e9 {
			t.Fatalf("%s at %d ns of the watch", c.Node, at)
		}
	}
	if both[node(0)] != 15 || both[node(1)] != 9 || len(rec.Calls) != 25 || len(ids) != 25 {
		t.Errorf("%v of %d calls with %d ids", both, len(rec.Calls), len(ids))
	}
	if len(rec.Histograms) != 2 || rec.Histograms[0].Node == rec.Histograms[1].Node {
		t.Errorf("%+v", rec.Histograms)
	}
	uses := 0
	for range rec.ConnUses("10.0.0.2:4001") {
		uses++
	}
	if uses != 1 {
		t.Errorf("a use of a connection is there %d times", uses)
	}
	for k := range f.servers {
		host := rec.HostOf(node(k))
		cpus, _ := host.Of(series.MachineCPUs, "").Last()
		ran, _ := rec.Of(series.MainRun, node(k)).Last()
		start, end := host.Window()
		if cpus != float64(k+1) || ran != float64(k+1) || len(host.Of(series.MainRun, node(k))) != 1 ||
			rec.ServerOf(node(k)) != fmt.Sprint("redis 7.0.", k) {
			t.Errorf("node %d: %v CPUs, %v", k, cpus, ran)
		}
		if off := start - 3*3600e9 - 1e18; off < -2e6 || off > 2e6 || end-start != 20e9 {
			t.Errorf("node %d: its watch began %d ns off", k, off)
		}
		// The processes 7 of three hosts are others, and app[7] waits for both servers.
		if e := host.EventsOf(recording.SourceHost, "process:7", recording.KindThrottled); len(e) != 1 {
			t.Errorf("node %d: %+v", k, e)
		}
	}
	if e := rec.EventsOf(recording.SourceHost, "process:7", recording.KindThrottled); len(e) != 1 {
		t.Errorf("%+v", e)
	}
}

// TestServerOfAServer: a host between, which answers some and calls another, is that of a server where it answers more.
func TestServerOfAServer(t *testing.T) {
	for _, c := range []struct {
		pairs   [][]int
		servers string
	}{
		{[][]int{{0, 5}, {0, 0}}, "[0]"},
		{[][]int{{0, 5}, {5, 0}}, "[0]"},
		{[][]int{{0, 0, 5}, {0, 0, 7}, {0, 0, 0}}, "[1 0]"},
		{[][]int{{0, 7, 0}, {0, 0, 5}, {0, 0, 0}}, "[0]"}, // 2 calls 1, and 1 calls 0
		{[][]int{{0, 7, 0}, {0, 0, 9}, {0, 0, 0}}, "[1 0]"},
		{[][]int{{0, 0, 5, 0}, {0, 0, 0, 7}, {0, 0, 0, 0}, {0, 0, 0, 0}}, "[1 0]"},
		{[][]int{{0, 0}, {0, 0}}, "[]"},
	} {
		if got := fmt.Sprint(serversOf(c.pairs)); got != c.servers {
			t.Errorf("%v: %s, want %s", c.pairs, got, c.servers)
		}
	}
}

// TestOneServerByLoopback: the node of one server's host has the name that its clients use, and its times stay.
func TestOneServerByLoopback(t *testing.T) {
	f := newFleet(3*3600e9, 0)
	f.call(0, 1e18, true)
	f.call(1, 1e18+1e9, true)
	rec, results, err := All([]*recording.Recording{f.client, f.servers[0]}, false)
	if err != nil || results[0].Joined != 1 || results[0].UnknownConn != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	start, _ := rec.Window()
	ran, _ := rec.Of(series.MainRun, node(0)).Last()
	if fmt.Sprint(rec.Nodes()) != fmt.Sprint([]string{node(0)}) || rec.Calls[0].Node != node(0) || ran != 1 ||
		rec.Hosts != nil || start != 1e18+3*3600e9 {
		t.Errorf("%q: %+v from %d", rec.Nodes(), rec.Calls, start)
	}
}

// TestCallsBetweenServers: a server's host calls another one. Its calls are not joined, and count once.
func TestCallsBetweenServers(t *testing.T) {
	f := newFleet(3*3600e9, -7*3600e9)
	for i := range int64(10) {
		f.call(0, 1e18+i*1e9, true)
		f.call(1, 1e18+i*1e9+3e8, true)
	}
	between := fleet{client: f.servers[1], servers: f.servers, ahead: []int64{f.ahead[0] - f.ahead[1]}, seq: 1000}
	between.call(0, 1e18+5e8+f.ahead[1], true)
	for _, r := range f.servers {
		r.Calls[len(r.Calls)-1].Conn = "10.0.0.11:5000"
	}
	rec, results, err := All([]*recording.Recording{f.client, f.servers[0], f.servers[1]}, false)
	if err != nil || len(results) != 2 || results[0].Joined != 10 || results[1].Joined != 10 {
		t.Fatalf("%+v, %v", results, err)
	}
	at := map[string]int{}
	for _, a := range account.Build(rec).Slow {
		at[a.Call.Node+" "+a.Call.Side]++
	}
	want := map[string]int{node(0) + " both": 10, node(1) + " both": 10, node(0) + " client": 1}
	if !maps.Equal(at, want) {
		t.Errorf("%v, want %v", at, want)
	}
}
