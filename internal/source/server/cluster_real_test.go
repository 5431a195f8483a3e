package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/session"
)

func identify(t *testing.T, r *running) server.Identity {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, _, err := session.Open(ctx, r.target(), "slowpath")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := server.Identify(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIdentify(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	eachServer(t, func(t *testing.T, r *running) {
		id := identify(t, r)
		if id.Server != r.binary.Product+" "+r.binary.Version || id.Mode != "standalone" || id.Role != "master" ||
			len(id.RunID) != 40 ||
			id.ProcessID != r.cmd.Process.Pid || id.TCPPort != r.port || id.ClusterEnabled || len(id.Nodes) != 0 ||
			id.Merged() {
			t.Errorf("%+v", id)
		}
	})
}

func TestIdentifyWithoutInfo(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	r := start(t, redis70(t))
	r.client().do("ACL", "SETUSER", "default", "-info")
	if id := identify(t, r); id.Server != "redis 7.0.15" || id.Mode != "standalone" || id.Role != "master" ||
		id.Merged() {
		t.Errorf("%+v", id)
	}
}

func TestCluster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, b := range versions(t) {
		t.Run(string(b.Name), func(t *testing.T) {
			t.Parallel()
			r := start(t, b, "--cluster-enabled", "yes")
			c := r.client()
			for from := 0; from < 16384; from += 1024 {
				args := []string{"CLUSTER", "ADDSLOTS"}
				for slot := from; slot < from+1024; slot++ {
					args = append(args, fmt.Sprint(slot))
				}
				c.do(args...)
			}
			await.Until(t, "the cluster is up", func() bool {
				return strings.Contains(c.do("CLUSTER", "INFO").Text(),
					"cluster_state:ok")
			})
			if id := identify(t, r); id.Mode != "cluster" || !id.ClusterEnabled || len(id.Nodes) != 1 ||
				id.Nodes[0] != r.addr() {
				t.Errorf("%+v", id)
			}
			w := watch(t, r.target())
			w.more(3)
			rec := w.end()
			if n, ok := series(rec, "cluster_known_nodes").Last(); !ok || n != 1 {
				t.Errorf("cluster_known_nodes %v %v", n, ok)
			}
			s, ok := rec.SnapshotOf(recording.SourceServer, node, server.SnapshotClusterNodes)
			if !ok || !strings.Contains(s.Body, "0-16383") {
				t.Errorf("nodes: %q", s.Body)
			}
			if info, _ := rec.SnapshotOf(recording.SourceServer, node,
				server.SnapshotInfo); !strings.Contains(info.Body, `"cluster_state":"ok"`) {
				t.Error(info.Body)
			}
		})
	}
}
