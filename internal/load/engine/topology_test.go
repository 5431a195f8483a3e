//go:build linux

package engine

import (
	"slices"
	"strings"
	"testing"
)

func TestParseReplication(t *testing.T) {
	for _, test := range []struct {
		name, text, master string
		replicas           []string
		fails              bool
	}{
		{
			name: "master",
			text: "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n" +
				"slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0\r\n" +
				"slave1:ip=::1,port=6380,state=online,offset=14,lag=1\r\nmaster_failover_state:no-failover\r\n",
			replicas: []string{"10.0.0.2:6379", "[::1]:6380"},
		},
		{
			name: "a replica that is not in sync",
			text: "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0\r\n",
		},
		{name: "no address", text: "role:master\r\nslave0:port=6379,state=online\r\nslave1\r\nslaveof:x\r\n"},
		{
			name: "replica",
			text: "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n" +
				"slave0:ip=10.0.0.2,port=6379,state=online\r\n", master: "10.0.0.1:6379",
		},
		{name: "a sentinel", text: "# Sentinel\r\nsentinel_masters:1\r\n", fails: true},
		{name: "nothing", fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := parseReplication(test.text)
			if (err != nil) != test.fails || r.master != test.master || !slices.Equal(r.replicas, test.replicas) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func FuzzParseReplication(f *testing.F) {
	f.Add("role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0\r\n")
	f.Add("role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReplication(text)
		if err != nil && (r.master != "" || len(r.replicas) > 0) {
			t.Fatalf("an error and %+v", r)
		}
		if r.master != "" && len(r.replicas) > 0 {
			t.Fatalf("a replica with replicas of its own to go to: %+v", r)
		}
		for _, addr := range r.replicas {
			if !strings.Contains(addr, ":") {
				t.Fatalf("replica %q", addr)
			}
		}
	})
}
