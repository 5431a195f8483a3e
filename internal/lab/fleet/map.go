package fleet

import (
	"context"
	"fmt"
	"strings"

	"slowpath/internal/lab/servers"
)

// MapSpec is the map of a cluster of which only one node runs. The cost of a command that writes the map does not
// depend on the other nodes.
type MapSpec struct {
	Masters          int // 1 … 9999; the first is the server that runs
	Replicas         int // per master
	RangesPerMaster  int // of slots; 0 is 1
	MigratingSlots   int // of the server that runs: they migrate to the second master
	UncoveredSlots   int // the last ones, which no node has
	BusTimeoutMillis int // cluster-node-timeout; 0 is a day, so that no node counts as failed
}

const dayMillis = 86_400_000

// StartMap starts one server which knows a cluster of spec.Masters × (1 + spec.Replicas) nodes. The others have
// addresses of 127.77.0.0/16 where nobody listens, so that a map of hundreds of nodes needs no further process.
// Otherwise it is like Start.
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
		return nil, fmt.Errorf("starting %s with a map: %d masters with %d replicas and %d ranges each are impossible",
			bin.Name, m.Masters, m.Replicas, m.RangesPerMaster)
	}
	spec.cluster, spec.nodes = true, &m
	spec.Config = append([]string{fmt.Sprintf("cluster-node-timeout %d", m.BusTimeoutMillis)}, spec.Config...)
	return f.start(ctx, bin, spec, newGroup(), "master")
}

// hasShardIDs reports whether nodes.conf has shard ids, as from Redis 7.2. Without them CLUSTER SHARDS ends the servers
// 8.0.2 and Valkey 8.1.1 with an assertion.
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

// slots divides the slots into as many stripes as there are ranges and gives them to the masters in turn.
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
