package web

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"

	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/cluster"
)

// MapSchema names the document of /api/v1/topology.
const MapSchema = "slowpath.map/v1"

// Map is what is watched: nodes, their roles and slots, and who calls.
type Map struct {
	Schema   string    `json:"schema"`
	Kind     string    `json:"kind"`       // standalone, cluster, proxy, unknown
	Server   string    `json:"server"`     // such as "redis 7.0.15"
	AsSeenBy string    `json:"as_seen_by"` // node whose CLUSTER NODES this is; empty: none
	Nodes    []MapNode `json:"nodes"`
	// Uncovered are slots that no node of the map serves, as "0-99"; empty outside a cluster.
	Uncovered []string    `json:"uncovered_slots"`
	Callers   []MapCaller `json:"callers"` // those first whose slow calls lost most
	// CallersOf is the time in seconds of which Slow and LostNs of callers are.
	CallersOf int64 `json:"callers_of_seconds"`
}

// MapNode is a server. Calls are those of users, in the last minute.
type MapNode struct {
	Address string   `json:"address"`
	Watched bool     `json:"watched"`
	Role    string   `json:"role"`    // primary, replica; empty: not known
	Primary string   `json:"primary"` // of a replica, its address
	State   string   `json:"state"`   // ok, suspected, failed, joining; empty: not known
	Slots   int      `json:"slots"`
	Ranges  []string `json:"ranges"` // of slots, as "0-5460"
	Moving  int      `json:"moving"` // slots that are being moved from or to it
	Calls   int64    `json:"calls"`
	Slow    int64    `json:"slow"`
	Failed  int64    `json:"failed"`
	P50Ns   int64    `json:"p50_ns"`
	P99Ns   int64    `json:"p99_ns"`
}

// MapCaller is a program of this host, or another host, that calls.
type MapCaller struct {
	Name   string `json:"name"`
	Calls  int64  `json:"calls"` // since the watch began
	Slow   int64  `json:"slow"`
	LostNs int64  `json:"lost_ns"` // beyond the slow threshold
}

const (
	maxMapNodes   = 1000
	maxMapRanges  = 200 // of slots, per node
	maxMapCallers = 200
	mapSeconds    = 60
)

// topology answers /api/v1/topology.
func (s *Server) topology(w http.ResponseWriter, _ *http.Request) error {
	sendJSON(w, http.StatusOK, s.mapNow())
	return nil
}

func (s *Server) mapNow() Map {
	v := s.o.View
	m := Map{
		Schema: MapSchema, Kind: bound(v.Meta(recording.MetaKind)), Server: bound(v.Meta(recording.MetaServer)),
		Uncovered: []string{}, Callers: []MapCaller{}, CallersOf: int64(live.DefaultKeep.Seconds()),
	}
	watched := s.watchedNodes()
	var of cluster.Map
	m.AsSeenBy, of = s.clusterMap(watched)
	for _, n := range of.Nodes[:min(len(of.Nodes), maxMapNodes)] {
		m.Nodes = append(m.Nodes, clusterNode(of, n))
	}
	if m.AsSeenBy != "" {
		m.Uncovered = ranges(of.Uncovered())
	}
	for _, address := range watched {
		at := slices.IndexFunc(m.Nodes, func(n MapNode) bool { return n.Address == address })
		if at < 0 {
			m.Nodes = append(m.Nodes, s.plainNode(address))
			at = len(m.Nodes) - 1
		}
		m.Nodes[at].Watched = true
	}
	m.Nodes = listed(m.Nodes, maxMapNodes)
	s.countCalls(m.Nodes)
	for _, c := range listed(v.Callers(), maxMapCallers) {
		m.Callers = append(m.Callers, MapCaller{bound(c.Name), c.Calls, int64(c.Slow), c.LostNs})
	}
	return m
}

// watchedNodes are the addresses of the servers that are watched.
func (s *Server) watchedNodes() []string {
	var nodes []string
	_ = json.Unmarshal([]byte(s.o.View.Meta(recording.MetaNodes)), &nodes) // without it those with calls are left
	for _, n := range s.o.View.Nodes() {
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return listed(nodes, maxMapNodes)
}

// clusterMap is the newest CLUSTER NODES of the first watched node that has one.
func (s *Server) clusterMap(watched []string) (by string, m cluster.Map) {
	for _, node := range watched {
		text, ok := s.o.View.LastSnapshot(node, server.SnapshotClusterNodes)
		if !ok {
			continue
		}
		m, err := cluster.ParseNodes(text)
		if err != nil {
			continue
		}
		if host, _, err := net.SplitHostPort(node); err == nil {
			m.FillHosts(host)
		}
		return bound(node), m
	}
	return "", m
}

func clusterNode(m cluster.Map, n cluster.Node) MapNode {
	out := MapNode{
		Address: bound(n.Addr()), Role: "replica", State: "ok", Slots: n.Slots(), Ranges: ranges(n.Ranges),
		Moving: len(n.Migrating) + len(n.Importing),
	}
	if out.Address == "" {
		out.Address = bound(n.ID)
	}
	if n.Primary {
		out.Role = "primary"
	} else if p, ok := m.Node(n.PrimaryID); ok {
		out.Primary = bound(p.Addr())
	}
	switch {
	case n.Failed():
		out.State = "failed"
	case n.HasFlag("fail?"):
		out.State = "suspected"
	case n.HasFlag("handshake"):
		out.State = "joining"
	}
	return out
}

func ranges(all []cluster.Range) []string {
	out := []string{}
	for _, r := range all[:min(len(all), maxMapRanges)] {
		out = append(out, r.String())
	}
	if len(all) > maxMapRanges {
		out = append(out, "…")
	}
	return out
}

// plainNode is a server of no cluster, as its INFO has it.
func (s *Server) plainNode(address string) MapNode {
	out := MapNode{Address: bound(address), Ranges: []string{}}
	text, _ := s.o.View.LastSnapshot(address, server.SnapshotInfo)
	var info map[string]string
	if json.Unmarshal([]byte(text), &info) != nil {
		return out
	}
	switch info["role"] {
	case "master":
		out.Role = "primary"
	case "slave":
		out.Role = "replica"
		if host := info["master_host"]; host != "" {
			out.Primary = bound(strings.TrimSuffix(net.JoinHostPort(host, info["master_port"]), ":"))
		}
	}
	return out
}

// countCalls adds what users called in the last minute.
func (s *Server) countCalls(nodes []MapNode) {
	at := map[string]*MapNode{}
	for i := range nodes {
		at[nodes[i].Address] = &nodes[i]
	}
	sums := map[string]*live.Latencies{}
	end := s.o.View.Complete()
	for _, one := range s.o.View.Seconds(end-mapSeconds, end) {
		n := at[one.Node]
		if n == nil || one.Whose != live.Users {
			continue
		}
		n.Calls, n.Slow, n.Failed = n.Calls+one.Calls, n.Slow+one.Slow, n.Failed+one.Failed
		if sums[one.Node] == nil {
			sums[one.Node] = &live.Latencies{}
		}
		sums[one.Node].Merge(one.Latencies)
	}
	for name, l := range sums {
		at[name].P50Ns, at[name].P99Ns = l.Quantile(.5), l.Quantile(.99)
	}
}
