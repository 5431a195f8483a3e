//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// ErrTopology: the target is not of the kind that the options say.
var ErrTopology = errors.New("not that kind of target")

// allSlots are the slots of a master without a cluster.
var allSlots = []cluster.Range{{From: 0, To: cluster.SlotCount - 1}}

// askCluster asks any node of a cluster.
func askCluster(ctx context.Context, rt *router) (topology, error) {
	return firstOf(ctx, rt.candidates(), clusterSlots)
}

func clusterSlots(ctx context.Context, t target.Target) (topology, error) {
	s, _, err := session.Open(ctx, t, clientName)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	reply, err := s.Do(ctx, "CLUSTER", "SLOTS")
	var refusal *resp.ServerError
	if errors.As(err, &refusal) && strings.Contains(refusal.Message, "cluster support disabled") {
		return nil, fmt.Errorf("%w: %s is not in a cluster (cluster-enabled no); leave out -c", ErrTopology, t.Addr())
	}
	if err != nil {
		return nil, fmt.Errorf("CLUSTER SLOTS of %s: %w", t.Addr(), err)
	}
	m, err := cluster.ParseSlots(reply)
	if err != nil && !errors.Is(err, cluster.ErrNoNodes) {
		return nil, fmt.Errorf("CLUSTER SLOTS of %s: %w", t.Addr(), err)
	}
	m.FillHosts(t.Host)
	found := shardsOf(m, t)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s knows no master with slots; form the cluster first: redis-cli --cluster "+
			"create", ErrTopology, t.Addr())
	}
	return found, nil
}

func shardsOf(m cluster.Map, t target.Target) (found topology) {
	for _, n := range m.Serving() {
		s := shard{slots: n.Ranges, master: t.WithAddr(n.Addr())}
		for _, r := range m.Replicas(n.ID) {
			if r.Addr() != "" {
				s.replicas = append(s.replicas, t.WithAddr(r.Addr()))
			}
		}
		found = append(found, s)
	}
	return found
}

// askReplication asks one server of a master and its replicas for the others.
func askReplication(ctx context.Context, rt *router) (topology, error) {
	return firstOf(ctx, rt.candidates(), func(ctx context.Context, t target.Target) (topology, error) {
		r, err := replicationOf(ctx, t)
		if err == nil && r.master != "" {
			t = t.WithAddr(r.master)
			if r, err = replicationOf(ctx, t); err == nil && r.master != "" {
				err = fmt.Errorf("%w: %s is the replica of a replica; name the master", ErrTopology, t.Addr())
			}
		}
		if err != nil {
			return nil, err
		}
		return topology{oneShard(t, r.replicas)}, nil
	})
}

// oneShard has all slots.
func oneShard(master target.Target, replicas []string) shard {
	s := shard{slots: allSlots, master: master}
	for _, addr := range replicas {
		s.replicas = append(s.replicas, master.WithAddr(addr))
	}
	return s
}

// replication is the content of INFO replication.
type replication struct {
	master   string   // HOST:PORT, of a replica
	replicas []string // HOST:PORT, of a master; those that are in sync
}

func replicationOf(ctx context.Context, t target.Target) (replication, error) {
	s, _, err := session.Open(ctx, t, clientName)
	if err != nil {
		return replication{}, err
	}
	defer s.Close()
	reply, err := s.Do(ctx, "INFO", "replication")
	if err != nil {
		return replication{}, fmt.Errorf("INFO replication of %s: %w; without it replicas cannot be found: "+
			"--read-from master", t.Addr(), err)
	}
	r, err := parseReplication(reply.Text())
	if err != nil {
		return r, fmt.Errorf("INFO replication of %s: %w", t.Addr(), err)
	}
	return r, nil
}

// parseReplication reads lines such as role:master, slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0 and
// master_host:10.0.0.1 (genRedisInfoString in Redis' server.c).
func parseReplication(text string) (r replication, err error) {
	var role, host, port string
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "role":
			role = value
		case name == "master_host":
			host = value
		case name == "master_port":
			port = value
		case isReplicaLine(name):
			if addr := replicaAddr(value); addr != "" {
				r.replicas = append(r.replicas, addr)
			}
		}
	}
	switch {
	case role == "master":
		return r, nil
	case host != "" && port != "":
		return replication{master: net.JoinHostPort(host, port)}, nil
	}
	return replication{}, fmt.Errorf("%w: neither a master nor a replica", ErrTopology)
}

// isReplicaLine: slave0, slave1, …
func isReplicaLine(name string) bool {
	number, ok := strings.CutPrefix(name, "slave")
	_, err := strconv.Atoi(number)
	return ok && err == nil
}

func replicaAddr(value string) string {
	var host, port, state string
	for field := range strings.SplitSeq(value, ",") {
		switch key, text, _ := strings.Cut(field, "="); key {
		case "ip":
			host = text
		case "port":
			port = text
		case "state":
			state = text
		}
	}
	if host == "" || port == "" || state != "online" {
		return ""
	}
	return net.JoinHostPort(host, port)
}
