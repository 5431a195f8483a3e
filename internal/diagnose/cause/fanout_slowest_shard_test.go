package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// fanoutCase is a cluster with a second node that is throttled for 60 ms of each 100 ms, to which a client calls.
// others gives the client's last requests to the other nodes, as one sample of each of its slow calls shows it.
func fanoutCase(op string, others func(look int64) []recording.OtherNodeCall) clusterCase {
	c := newClusterCase("redis 7.0.15")
	tapUsed(c.Recording)
	for _, node := range clusterNodes {
		c.up(node, 0, clusterEnd)
		tapLatencies(c.Recording, node, "client "+op, 1e5, 20_000)
	}
	for look := range int64(100) {
		c.stall(clusterNodes[1], op, "shop[7]", look*100e6+1e9, others(look))
	}
	return c
}

// stall is one throttled span of a node, in which a call of a client waits and is sampled after 40 ms.
func (c clusterCase) stall(node, op, process string, at int64, others []recording.OtherNodeCall) {
	tapWait(c.Recording, node, recording.KindThrottled, at, 60e6, recording.ThreadDetail{})
	c.Call(recording.Call{
		Source: recording.SourceTap, Conn: "10.0.0.7:1", Op: op, Node: node, Side: "both",
		Client: process, IntendedNs: at, StartNs: at, EndNs: at + 61e6,
	},
		recording.Segment{Actor: recording.Server, State: recording.Throttled, FromNs: at, ToNs: at + 60e6},
		recording.Segment{Actor: recording.Server, State: recording.Exec, FromNs: at + 60e6, ToNs: at + 61e6})
	c.event(recording.SourceTap, node, recording.KindOtherNodes, at, 40e6, recording.OtherNodesDetail{
		Op:     op,
		Client: "10.0.0.7:1", Process: process, Others: others,
	})
}

func besides(afterNs, tookNs int64) []recording.OtherNodeCall {
	return []recording.OtherNodeCall{{Node: clusterNodes[0], SentAfterNs: afterNs, TookNs: tookNs}, {
		Node:        clusterNodes[2],
		SentAfterNs: afterNs + 1e4, TookNs: tookNs,
	}}
}

// evenly are exchanges of calls that have nothing to do with the slow one: the last before the sample came at any time
// in the period of their callers.
func evenly(look, periodNs int64) []recording.OtherNodeCall {
	phase := func(k int64) int64 { return 40e6 - (look*k%101)*periodNs/101 }
	return []recording.OtherNodeCall{{Node: clusterNodes[0], SentAfterNs: phase(37), TookNs: 2e5}, {
		Node:        clusterNodes[2],
		SentAfterNs: phase(53), TookNs: 2e5,
	}}
}

func TestFanoutSlowestShard(t *testing.T) {
	waiting := func(at int64) []recording.OtherNodeCall {
		return []recording.OtherNodeCall{{Node: clusterNodes[0], SentAfterNs: at, Waiting: true}, {
			Node:        clusterNodes[2],
			SentAfterNs: at, Waiting: true,
		}}
	}
	once := func(every int64) func(int64) []recording.OtherNodeCall {
		return func(look int64) []recording.OtherNodeCall {
			if look%every == 0 {
				return besides(2e4, 3e5)
			}
			return besides(-90e6, 3e5)
		}
	}
	always := func(o []recording.OtherNodeCall) func(int64) []recording.OtherNodeCall {
		return func(int64) []recording.OtherNodeCall { return o }
	}
	checkCluster(t, "fanout-slowest-shard", []clusterWant{
		{
			name: "sent with the others", rec: fanoutCase("GET", always(besides(2e4, 3e5))), first: true,
			evidence: "in 100 of 100 samples of slow calls of shop[7] that waited, it had asked other nodes at the " +
				"same time (up to 3 nodes in all), had their replies within 300 µs",
			fix: "one hash tag, {user:7}:name",
		},
		{name: "sent a moment after the others, which had not answered", rec: fanoutCase("MGET",
			always(besides(-1e5, 3e5))), first: true},
		{name: "two of three calls are", rec: fanoutCase("GET", func(look int64) []recording.OtherNodeCall {
			if look%3 == 0 {
				return besides(-90e6, 3e5)
			}
			return besides(2e4, 3e5)
		}), first: true, against: "in 34 of 100 samples of slow calls of shop[7], no other node " +
			"had been asked at that time"},
		{name: "one of six calls is", rec: fanoutCase("GET", once(6))},
		{name: "one node after the other, without a pause", rec: fanoutCase("GET", always(besides(-3e5, 2e5)))},
		{name: "a pipeline to one node", rec: fanoutCase("GET", always(nil))},
		{name: "callers that go on with the others", rec: fanoutCase("GET", always(besides(39e6, 2e5)))},
		{name: "independent callers, 1000 calls per second", rec: fanoutCase("GET",
			func(look int64) []recording.OtherNodeCall { return evenly(look, 1e6) })},
		{name: "independent callers, 20 calls per second", rec: fanoutCase("GET",
			func(look int64) []recording.OtherNodeCall { return evenly(look, 50e6) })},
		{name: "all nodes are slow", rec: fanoutCase("GET", always(waiting(1e4)))},
		{name: "the others were late as well", rec: fanoutCase("GET", always(besides(2e4, 35e6)))},
		{name: "a client that reads the cluster map", rec: fanoutCase("CLUSTER SLOTS", always(besides(2e4, 3e5)))},
	})
	for name, want := range map[string]struct {
		rec             clusterCase
		first, evidence string
	}{
		"alone": {
			fanoutCase("GET", always(besides(-3e5, 2e5))), "server-cfs-throttled",
			"its callers asked one node at a time: in 0 of 100 samples",
		},
		"all are slow": {fanoutCase("GET", always(waiting(1e4))), "server-cfs-throttled", ""},
		"no looks":     {fanoutCase("GET", always(nil)).without(recording.KindOtherNodes), "server-cfs-throttled", ""},
	} {
		t.Run("the node's own cause, "+name, func(t *testing.T) {
			f, all := want.rec.find(want.first)
			if len(all) == 0 || all[0].Cause != want.first {
				t.Fatalf("%+v", all)
			}
			holds(t, "evidence", texts(f.Evidence), want.evidence)
		})
	}
	t.Run("the slow node's own cause comes first", func(t *testing.T) {
		_, all := fanoutCase("GET", always(besides(2e4, 3e5))).find("")
		if len(all) < 2 || all[0].Cause != "server-cfs-throttled" || strings.Contains(texts(all[0].Evidence),
			"one node at a time") {
			t.Errorf("%+v", all)
		}
	})
	t.Run("a fan-out that is not most of the slow calls does not come first", func(t *testing.T) {
		c := fanoutCase("GET", always(besides(2e4, 3e5)))
		for look := range int64(100) {
			for range 3 {
				c.stall(clusterNodes[1], "GET", "cart[8]", look*100e6+1e9, besides(-3e6, 1e5))
			}
		}
		if _, all := c.find(""); all[0].Cause != "server-cfs-throttled" {
			t.Errorf("%+v", all)
		}
	})
}

// without drops the events of a kind.
func (c clusterCase) without(kind string) clusterCase {
	var kept []recording.Event
	for _, e := range c.Events {
		if e.Kind != kind {
			kept = append(kept, e)
		}
	}
	c.Events = kept
	return c
}

func TestFanoutFixNamesTheProxy(t *testing.T) {
	c := newClusterCase("redis 7.0.15")
	tapUsed(c.Recording)
	for look := range int64(100) {
		c.stall(clusterNodes[1], "MGET", "nutcracker[9]", look*100e6+1e9, besides(1e4, 2e5))
	}
	f, _ := c.find("fanout-slowest-shard")
	holds(t, "fix", strings.Join(f.FixLines(), "\n"), "twemproxy: set hash_tag to")
}
