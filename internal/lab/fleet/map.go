package fleet

import (
	"context"
	"fmt"
	"strings"

	"slowpath/internal/lab/servers"
)

// MapSpec is the map of a cluster of which one node runs: what a command that writes the map costs does not depend on
// who answers.
type MapSpec struct {
	Masters          int // 1 … 9999; the first is the server that runs
	Replicas         int // per master
	RangesPerMaster  int // of slots; 0 is 1. As many as there are slots for makes every slot a range of its own
	MigratingSlots   int // of the server that runs, on their way to the second master
	UncoveredSlots   int // the last ones, which nobody has
	BusTimeoutMillis int // cluster-node-timeout; 0 is a day, so that nobody is held for failed
}

const dayMillis = 86_400_000

// StartMap starts one server which knows a cluster of spec.Masters × (1 + spec.Replicas) nodes. The others are at
// addresses of 127.77.0.0/16 where nobody listens, so that it costs a few file descriptors and no process to have a map
// of hundreds of nodes. Otherwise as Start.
func (f *Fleet) StartMap(ctx context.Context, bin servers.Binary, m MapSpec, spec Spec) (*Instance, error) {
	if m.RangesPerMaster == 0 {
		m.RangesPerMaster = 1
	}
	if m.BusTimeoutMillis == 0 {
		m.BusTimeoutMillis = dayMillis
	}
	if m.Masters < 1 || m.Replicas < 0 || m.Masters*(1+m.Replicas) > 9999 || m.RangesPerMaster < 1 ||
		m.Masters > Slots ||
		m.MigratingSlots > 0 && m.Masters < 2 || m.MigratingSlots > Slots/m.Masters || m.UncoveredSlots >= Slots {
		return nil, fmt.Errorf("starting %s with a map: %d masters with %d replicas and %d ranges each cannot be",
			bin.Name, m.Masters, m.Replicas, m.RangesPerMaster)
	}
	spec.cluster, spec.nodes = true, &m
	spec.Config = append([]string{fmt.Sprintf("cluster-node-timeout %d", m.BusTimeoutMillis)}, spec.Config...)
	return f.start(ctx, bin, spec, newGroup(), "master")
}

// shardIDs are in nodes.conf since Redis 7.2; without them CLUSTER SHARDS of 8.0.2 and of Valkey 8.1.1 ends the server
// by an assertion.
func (i Info) hasShardIDs() bool {
	return strings.HasPrefix(string(i.Server), "valkey-") || i.Version >= "7.2"
}

// nodesConf is the nodes.conf of the map, as clusterSaveConfig in Redis' cluster.c writes it.
func (m MapSpec) nodesConf(i Info) string {
	var b strings.Builder
	owned := m.slots()
	for k := range m.Masters {
		for r := range m.Replicas + 1 {
			number := k + r*m.Masters
			flags, primary := "master", "-"
			if r > 0 {
				flags, primary = "slave", nodeID(k)
			}
			address := fmt.Sprintf("127.77.%d.%d:6379@16379", number/250, 1+number%250)
			if number == 0 {
				flags = "myself,master"
				address = fmt.Sprintf("127.0.0.1:%d@%d", i.Port, i.Port+10000)
			}
			if i.hasShardIDs() {
				address += ",,shard-id=" + nodeID(k)
			}
			fmt.Fprintf(&b, "%s %s %s %s 0 0 %d connected", nodeID(number), address, flags, primary, k+1)
			if r == 0 {
				b.WriteString(owned[k])
			}
			if number == 0 {
				for slot := range m.MigratingSlots {
					fmt.Fprintf(&b, " [%d->-%s]", slot, nodeID(1))
				}
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "vars currentEpoch %d lastVoteEpoch 0\n", m.Masters)
	return b.String()
}

// slots deals the slots out in as many stripes as there are ranges, one after the other to each master.
func (m MapSpec) slots() []string {
	owned := make([]string, m.Masters)
	stripes, end := min(m.Masters*m.RangesPerMaster, Slots), Slots-m.UncoveredSlots
	for s := range stripes {
		from, to := s*Slots/stripes, min((s+1)*Slots/stripes, end)-1
		switch {
		case from == to:
			owned[s%m.Masters] += fmt.Sprintf(" %d", from)
		case from < to:
			owned[s%m.Masters] += fmt.Sprintf(" %d-%d", from, to)
		}
	}
	return owned
}

func nodeID(number int) string { return fmt.Sprintf("%040x", number+1) }
