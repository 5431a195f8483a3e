package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/recording/join"
)

// throttledHost is what the host of a server records whose cgroup was throttled in some of 100 periods: names of nodes
// and cgroups are those of other hosts, too. ahead is how far its clock is ahead of the clients'.
func throttledHost(periods float64, ahead int64) *recording.Recording {
	r := recording.New()
	const node = "127.0.0.1:6379"
	for key, value := range recording.NodeMetas([]string{node}, map[string]recording.NodeServer{
		node: {Server: "redis 7.2.4", Kind: "standalone"},
	}) {
		r.SetMeta(key, value)
	}
	r.SetMeta(recording.MetaStart, fmt.Sprint(clientsBegin+ahead))
	r.SetMeta(recording.MetaEnd, fmt.Sprint(clientsBegin+ahead+10e9))
	for _, source := range []string{recording.SourceTap, recording.SourceHost} {
		r.SetMeta(recording.MetaSource+source, recording.Detail(recording.SourceStatus{Name: source, Used: true}))
	}
	r.Snapshot(recording.Snapshot{
		TimeNs: clientsBegin + ahead, Source: recording.SourceHost, Subject: node, Name: "cgroup",
		Body: `{"version":2,"cpu_path":"/redis","levels":[{"path":"/redis","quota_us":20000,"period_us":100000}]}`,
	})
	for i := range 2 {
		for name, value := range map[string]float64{
			"cpu.quota_us": 20000, "cpu.period_us": 100000, "cpu.nr_periods": float64(100 * i),
			"cpu.nr_throttled": periods * float64(i), "cpu.throttled_ns": periods * 40e6 * float64(i),
		} {
			r.Sample(recording.Sample{
				TimeNs: clientsBegin + ahead + int64(i)*10e9, Source: recording.SourceHost,
				Subject: recording.CgroupPrefix + "/redis", Name: name, Value: value,
			})
		}
	}
	return r
}

const clientsBegin = int64(1_800_000_000e9)

// TestSeveralServersHosts: of a clients' host and those of two servers, of which one or both were throttled, there is
// one verdict. It names the nodes as the clients do, and each one's quota is that of its own host.
func TestSeveralServersHosts(t *testing.T) {
	for _, throttled := range [][]int{{1}, {0, 1}} {
		periods, ahead := [2]float64{}, [2]int64{3 * 3600e9, -5 * 3600e9}
		for _, k := range throttled {
			periods[k] = float64(30 + 20*k)
		}
		client := recording.New()
		servers := []*recording.Recording{throttledHost(periods[0], ahead[0]), throttledHost(periods[1], ahead[1])}
		for i := range int64(80) {
			k := int(i % 2)
			slow, state := int64(6e6), recording.Busy
			if slices.Contains(throttled, k) {
				slow, state = 60e6, recording.Throttled
			}
			c := recording.Call{
				Source: recording.SourceTap, Conn: fmt.Sprint("10.0.0.2:400", k), Op: "GET", RequestBytes: 30,
				Node: fmt.Sprintf("10.0.0.1%d:6379", k), Side: recording.Client, Client: "app[7]", Seq: uint32(i + 1),
				IntendedNs: clientsBegin + i*100e6, StartNs: clientsBegin + i*100e6,
				EndNs: clientsBegin + i*100e6 + slow + 2e6,
			}
			client.Call(c, recording.Segment{
				Actor: recording.Nobody, State: recording.Unexplained, FromNs: c.IntendedNs, ToNs: c.EndNs,
			})
			c.Side, c.Node, c.Client = recording.Server, "127.0.0.1:6379", ""
			c.IntendedNs += 1e6 + ahead[k]
			c.StartNs, c.EndNs = c.IntendedNs, c.IntendedNs+slow
			servers[k].Call(c, recording.Segment{
				Actor: recording.Server, State: state, FromNs: c.IntendedNs, ToNs: c.EndNs,
			})
		}
		rec, _, err := join.All([]*recording.Recording{servers[0], client, servers[1]}, false)
		if err != nil {
			t.Fatal(err)
		}
		d := verdict.Diagnose(rec, "test")
		i := slices.IndexFunc(d.Findings, func(f cause.Finding) bool { return f.Cause == "server-cfs-throttled" })
		if i < 0 {
			t.Fatalf("%v: %s", throttled, d.Summary)
		}
		var nodes []string
		evidence := recording.Detail(d.Findings[i].Evidence)
		for _, k := range throttled {
			nodes = append(nodes, fmt.Sprintf("10.0.0.1%d:6379", k))
			said := fmt.Sprintf("10.0.0.1%d:6379: cpu.stat of /redis: throttled in %.0f of 100 periods", k, periods[k])
			if !strings.Contains(evidence, said) {
				t.Errorf("%v: no %q in %s", throttled, said, evidence)
			}
		}
		at := "(at " + nodes[0] + ")"
		if len(throttled) == 2 {
			at = "(at all 2 nodes)"
		}
		if got := slices.Sorted(slices.Values(d.Findings[i].Nodes)); !slices.Equal(got, nodes) ||
			!strings.Contains(d.Summary, at) || len(d.Target.Nodes) != 2 {
			t.Errorf("%v: %q of %q: %s", throttled, got, d.Target.Nodes, d.Summary)
		}
		if d.Populations[0].RecordedSlowCalls != 80 || d.Window.Seconds > 10.01 {
			t.Errorf("%v: %+v in %+v", throttled, d.Populations[0], d.Window)
		}
	}
}
