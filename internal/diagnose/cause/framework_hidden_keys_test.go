package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/recording"
)

// cleared is a server that a client's KEYS holds for 60 ms each second; with a form of the pattern.
func cleared(framework, libName string, own bool) edge {
	e := newEdge("redis 7.0.15")
	for i := range 200 {
		at, ns := int64(i)*50*edgeMs, edgeMs/10
		if i%20 == 10 {
			ns = 60 * edgeMs
			e.event(recording.SourceServer, recording.KindSlowlog, at, ns, recording.SlowlogDetail{
				ID:      int64(i),
				Command: "KEYS", ArgCount: 2, Client: "10.0.0.9:1", WindowNs: edgeMs, Framework: framework,
			})
		}
		e.call("kept", at, ns)
	}
	if own {
		e.event(recording.SourceServer, recording.KindSlowlog, 9*second, 11*edgeMs, recording.SlowlogDetail{
			ID:      500,
			Command: "DEL", ArgCount: 3000, Client: "10.0.0.9:1", WindowNs: edgeMs,
		})
	}
	return e.snapshot(recording.SourceServer, "clients",
		fmt.Sprintf(`{"id":1,"addr":"10.0.0.9:1","lib_name":%q,"lib_ver":"1.0"}`, libName))
}

func TestFrameworkHiddenKeys(t *testing.T) {
	explainEdge(t, find("framework-hidden-keys"), []edgeCase{
		{
			name: "T0: by the form of the pattern", rec: cleared("Spring Cache", "", true), found: true,
			evidence: "with patterns in the form of Spring Cache keys", fix: "BatchStrategies.scan(1000)",
		},
		{
			name: "T0: it deletes what it found", rec: cleared("Flask-Caching", "", true), found: true,
			evidence: "1 DEL or UNLINK of many keys followed", fix: "cache.clear()",
		},
		{
			name: "T0: by the library's name", rec: cleared("", "jedis(spring-data-redis_v4.0.0)", false), found: true,
			evidence: "spring-data-redis_v4.0.0", fix: "BatchStrategies",
		},
		{name: "KEYS of the user", rec: cleared("", "redis-py", true)},
		{name: "keys of a framework, and no command for them", rec: newEdge("redis 7.0.15").kept(edgeMs/10, 0,
			0).snapshot(recording.SourceServer, "clients",
			`{"id":1,"addr":"10.0.0.9:1","lib_name":"jedis(spring-data-redis_v4.0.0)"}`)},
	})
	explainEdge(t, find("slow-command"), []edgeCase{
		{name: "the framework's is not claimed twice", rec: cleared("Spring Cache", "", false)},
		{name: "KEYS of the user", rec: cleared("", "redis-py", false), found: true},
	})
}
