package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// clusterCase builds recordings of a cluster: twenty seconds of three masters and of a replica of the first one, all
// times in nanoseconds from 0.
type clusterCase struct{ *recording.Recording }

const (
	clusterEnd = int64(20e9)
	oldMaster  = "10.0.0.1:6379"
	newMaster  = "10.0.0.4:6379" // a replica of the old one at first
)

var (
	clusterNodes = []string{oldMaster, "10.0.0.2:6379", "10.0.0.3:6379", newMaster}
	clusterIDs   = map[string]string{
		oldMaster: strings.Repeat("a", 40), clusterNodes[1]: strings.Repeat("b", 40),
		clusterNodes[2]: strings.Repeat("c", 40), newMaster: strings.Repeat("d", 40),
	}
	evenSlots = map[string]string{oldMaster: "0-5460", clusterNodes[1]: "5461-10922", clusterNodes[2]: "10923-16383"}
)

func newClusterCase(server string) clusterCase {
	c := clusterCase{recording.New()}
	c.SetMeta(recording.MetaStart, "0")
	c.SetMeta(recording.MetaEnd, fmt.Sprint(clusterEnd))
	c.SetMeta(recording.MetaNodes, `["`+strings.Join(clusterNodes, `","`)+`"]`)
	c.SetMeta(recording.MetaServer, server)
	for _, node := range clusterNodes {
		c.view(node, 1e9, evenSlots, map[string]string{newMaster: oldMaster}, "")
		c.config(node, `{"cluster-node-timeout":"5000","cluster-require-full-coverage":"yes"}`)
	}
	return c
}

// view is a node's view of the cluster: the slots of each node, its replicas, and the nodes that it has as failed.
func (c clusterCase) view(node string, at int64, slots, replicas map[string]string, failed string) clusterCase {
	var text strings.Builder
	for _, one := range clusterNodes {
		flags, master := "master", "-"
		if of := replicas[one]; of != "" {
			flags, master = "slave", clusterIDs[of]
		}
		if one == node {
			flags = "myself," + flags
		}
		if one == failed {
			flags += ",fail"
		}
		fmt.Fprintf(&text, "%s %s@16379 %s %s 0 0 1 connected %s\n", clusterIDs[one], one, flags, master, slots[one])
	}
	c.Snapshot(recording.Snapshot{
		TimeNs: at, Source: recording.SourceServer, Subject: node, Name: "cluster-nodes",
		Body: text.String(),
	})
	return c
}

func (c clusterCase) config(node, body string) clusterCase {
	c.Snapshot(recording.Snapshot{TimeNs: 0, Source: recording.SourceServer, Subject: node, Name: "config", Body: body})
	return c
}

// up: the probe and the server source had their answers from a node in [from, to), 20 and 1 per second.
func (c clusterCase) up(node string, from, to int64) clusterCase {
	for at := from; at < to; at += 50e6 {
		c.probe(node, at, 1e5+(at/50e6%7)*2e3, "")
	}
	for at := from; at < to; at += 1e9 {
		c.sample(recording.SourceServer, node, "uptime_in_seconds", at, float64(at/1e9)+100)
	}
	return c
}

// upBut is up for all nodes, but not for one of them.
func (c clusterCase) upBut(node string) clusterCase {
	for _, one := range clusterNodes {
		if one != node {
			c.up(one, 0, clusterEnd)
		}
	}
	return c
}

// waits are the probe's calls that a node does not answer in [from, to).
func (c clusterCase) waits(node string, from, to int64, err string) clusterCase {
	for at := from; at < to; at += 50e6 {
		c.probe(node, at, to-at, err)
	}
	return c
}

func (c clusterCase) probe(node string, at, ns int64, err string) {
	c.Call(recording.Call{
		Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: node, Slot: -1, IntendedNs: at,
		StartNs: at, EndNs: at + ns, Error: err,
	})
}

func (c clusterCase) sample(source, node, name string, at int64, value float64) clusterCase {
	c.Sample(recording.Sample{TimeNs: at, Source: source, Subject: node, Name: name, Value: value})
	return c
}

// grows is a counter that grows evenly over the watch.
func (c clusterCase) grows(source, node, name string, by float64) clusterCase {
	for s := int64(0); s <= 20; s++ {
		c.sample(source, node, name, s*1e9, by*float64(s)/20)
	}
	return c
}

func (c clusterCase) event(source, node, kind string, at, ns int64, detail any) clusterCase {
	c.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: source, Subject: node, Kind: kind,
		Detail: recording.Detail(detail),
	})
	return c
}

// taken: the replica is seen as a master at a time; and what the other nodes report then.
func (c clusterCase) taken(at int64) clusterCase {
	c.event(recording.SourceServer, newMaster, recording.KindRoleChange, at, 0, map[string]string{
		"from": "slave",
		"to":   "master",
	})
	return c.tellTaken(at + 1e6)
}

func (c clusterCase) tellTaken(at int64) clusterCase {
	slots := map[string]string{
		newMaster: evenSlots[oldMaster], clusterNodes[1]: evenSlots[clusterNodes[1]],
		clusterNodes[2]: evenSlots[clusterNodes[2]],
	}
	for _, one := range clusterNodes[1:] {
		c.view(one, at, slots, nil, oldMaster)
	}
	return c
}

// unread: the clients with unread requests in the sockets of the old master from a time on.
func (c clusterCase) unread(at int64, who ...recording.Unread) clusterCase {
	c.Snapshot(recording.Snapshot{
		TimeNs: at, Source: recording.SourceHost, Subject: oldMaster,
		Name: recording.SnapshotUnread, Body: recording.Detail(who),
	})
	return c
}

// conn is a connection of an application to a node, as the tap saw it from the client's end.
func (c clusterCase) conn(node, client string, open, end int64, d recording.ConnDetail) clusterCase {
	d.Client, d.Side, d.PID, d.Comm = client, recording.Client, 77, "app"
	tapUsed(c.Recording)
	c.event(recording.SourceTap, node, recording.KindOpen, open, 0, recording.ConnDetail{
		Client: client,
		Side:   recording.Client, PID: 77, Comm: "app", DialNs: 1e5,
	})
	if end > 0 {
		d.AgeNs = end - open
		c.event(recording.SourceTap, node, recording.KindClose, end, 0, d)
	}
	return c
}

func (c clusterCase) stopped(from, to int64) clusterCase {
	return c.event(recording.SourceHost, oldMaster, recording.KindFrozen, from, to-from, recording.ThreadDetail{
		TID:   9,
		Share: 1,
	})
}

// tapped: the tap took part.
func (c clusterCase) tapped() clusterCase {
	tapUsed(c.Recording)
	return c
}

func (c clusterCase) find(id string) (cause.Finding, []cause.Finding) {
	c.Index()
	d := verdict.Diagnose(c.Recording, "test")
	for _, f := range d.Findings {
		if f.Cause == id {
			return f, d.Findings
		}
	}
	return cause.Finding{}, d.Findings
}

// clusterWant is a recording and what a cause must make of it.
type clusterWant struct {
	name     string
	rec      clusterCase
	first    bool // it is the first finding, or a consequence of that; else it is not found at all
	doubted  bool // something speaks against it
	evidence string
	against  string
	fix      string
}

func checkCluster(t *testing.T, id string, tests []clusterWant) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, all := tt.rec.find(id)
			if !tt.first {
				if f.Cause != "" {
					t.Fatalf("found: %+v", f)
				}
				return
			}
			if len(all) == 0 || all[0].Cause != id && f.Because != all[0].Cause {
				t.Fatalf("not first: %+v", all)
			}
			if f.Doubts > 0 != tt.doubted || f.ExcessShare <= 0 || f.ExcessShare > 1 {
				t.Errorf("%d doubts %v, share %.2f", f.Doubts, f.Against, f.ExcessShare)
			}
			holds(t, "evidence", texts(f.Evidence), tt.evidence)
			holds(t, "against", texts(f.Against), tt.against)
			holds(t, "fix", strings.Join(f.FixLines(), "\n"), tt.fix)
		})
	}
}
