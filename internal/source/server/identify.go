package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
)

// Identity is what a server says it is. A server that refuses INFO leaves most of it empty.
type Identity struct {
	Server         string // "redis 7.0.15", "valkey 8.1.1"
	Mode           string // standalone, cluster, sentinel
	Role           string // master, slave; as INFO has it
	RunID          string
	ProcessID      int // 0: not said
	TCPPort        int
	ClusterEnabled bool
	// in a cluster, the addresses of all nodes that have one and are not failed, in the order of CLUSTER NODES
	Nodes []string
	// those of masters that the other nodes flag as failed: one whose process hangs still has callers that wait for it
	Failed  []string
	clients float64
}

// fewClients is up to how many clients CLIENT LIST is asked for outside of a budget: they take the server a millisecond
// at most (see perClient).
const fewClients = 200

// Observers lists which clients watch the server, too: empty where the server does not say, or has too many clients to
// be asked at once.
func Observers(ctx context.Context, s *session.Session, id Identity) (observers []Client) {
	if id.clients == 0 || id.clients > fewClients {
		return nil
	}
	v, err := s.Do(ctx, "CLIENT", "LIST")
	if err != nil {
		return nil
	}
	for _, c := range ParseClients(v.Text()) {
		if c.Observes() {
			observers = append(observers, c)
		}
	}
	return observers
}

// Identify asks a server what it is. An error is one of the connection; what the server refuses to say stays empty,
// except that a server which is loading or busy is ErrLoading or ErrBusy of package session.
func Identify(ctx context.Context, s *session.Session) (Identity, error) {
	replies, err := s.Pipeline(ctx, [][]string{
		{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "cluster"}, {"INFO", "clients"},
	})
	if err != nil {
		return Identity{}, fmt.Errorf("identifying the server: %w", err)
	}
	all := parseInfo("")
	for _, v := range replies {
		if v.Err() == nil {
			all.merge(parseInfo(v.Text()))
		}
	}
	if len(all.text) == 0 {
		return fromHello(ctx, s, replies[0].Err())
	}
	id := identityOf(all)
	if id.ClusterEnabled {
		err = id.askNodes(ctx, s)
	}
	return id, err
}

func identityOf(in info) Identity {
	id := Identity{
		Server: product(in.text), Mode: in.text["redis_mode"], Role: in.text["role"],
		RunID:     in.text["run_id"],
		ProcessID: int(in.numbers["process_id"]), TCPPort: int(in.numbers["tcp_port"]),
		ClusterEnabled: in.numbers["cluster_enabled"] == 1, clients: in.numbers["connected_clients"],
	}
	if id.Mode == "" {
		id.Mode = in.text["server_mode"] // valkey 8.1
	}
	return id
}

// product names the server by the version field of its own; all others still say redis_version beside it, for old
// clients.
func product(text map[string]string) string {
	for _, name := range []string{"valkey", "dragonfly", "kvrocks", "keydb", "garnet"} {
		if v := text[name+"_version"]; v != "" {
			return name + " " + v
		}
	}
	if v := text["redis_version"]; v != "" {
		return "redis " + v
	}
	return ""
}

// fromHello asks a server that refuses INFO: every user may send HELLO, from 6.0.
func fromHello(ctx context.Context, s *session.Session, refusal error) (Identity, error) {
	v, err := s.Do(ctx, "HELLO")
	if err != nil {
		if refusal != nil {
			return Identity{}, fmt.Errorf("identifying the server: %w", refusal)
		}
		return Identity{}, fmt.Errorf("identifying the server: %w", err)
	}
	text := func(key string) string {
		value, _ := v.Get(key)
		return clip(value.Text())
	}
	id := Identity{Server: text("server") + " " + text("version"), Mode: text("mode"), Role: text("role")}
	if id.Role == "replica" {
		id.Role = "slave"
	}
	id.ClusterEnabled = id.Mode == "cluster"
	if id.ClusterEnabled {
		err = id.askNodes(ctx, s)
	}
	return id, err
}

// Merged reports whether INFO was answered by a proxy, which makes one of those of all its servers (Envoy): it leaves
// out process ids and ports, of which each server has another.
func (id Identity) Merged() bool { return id.RunID != "" && id.ProcessID == 0 && id.TCPPort == 0 }

// noCluster is in the refusal of CLUSTER by a server without cluster (redis cluster.c, clusterCommand).
const noCluster = "cluster support disabled"

// askNodes asks for the addresses of all nodes, and of the masters that failed. A refusal leaves them out. Envoy says
// cluster_enabled:1 in its INFO whatever is behind it, so the reply to CLUSTER decides.
func (id *Identity) askNodes(ctx context.Context, s *session.Session) error {
	replies, err := s.Pipeline(ctx, [][]string{{"CLUSTER", "NODES"}})
	if err != nil {
		return fmt.Errorf("asking for the nodes of the cluster: %w", err)
	}
	if refusal := replies[0].Err(); refusal != nil && strings.Contains(refusal.Error(), noCluster) {
		id.ClusterEnabled, id.Mode = false, "standalone"
		return nil
	}
	id.Nodes, id.Failed = nodeAddresses(replies[0], s.RemoteAddr())
	return nil
}

func nodeAddresses(v resp.Value, remote string) (nodes, failed []string) {
	if v.Err() != nil {
		return nil, nil
	}
	m, err := cluster.ParseNodes(v.Text())
	if err != nil {
		return nil, nil
	}
	if host, _, err := net.SplitHostPort(remote); err == nil {
		m.FillHosts(host)
	}
	for _, n := range m.Nodes {
		a := n.Addr()
		switch {
		case a == "" || n.HasFlag("handshake") || slices.Contains(nodes, a):
		case !n.Failed():
			nodes = append(nodes, a)
		case n.Primary && !slices.Contains(failed, a):
			failed = append(failed, a)
		}
	}
	// Another node may have had the same address before, which is still listed as failed.
	return nodes, slices.DeleteFunc(failed, func(a string) bool { return slices.Contains(nodes, a) })
}
