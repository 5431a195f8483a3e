package engine

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/target"
)

func TestTLS(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range []servers.Name{servers.Redis6016, servers.Redis7015, servers.Valkey811} {
		for _, versions := range []string{"TLSv1.2", "TLSv1.3"} {
			t.Run(string(name)+" "+versions, func(t *testing.T) {
				t.Parallel()
				i := start(t, name, fleet.Spec{TLS: true, Password: "x", Config: []string{"tls-protocols " + versions}})
				o := options(t, to(i))
				o.Target.Password = "x"
				total, r := sum(t, t.Context(), o)
				clean(t, total, r, o.Requests)
				if n := served(t, i, "get"); n != o.Requests {
					t.Errorf("the server saw %d calls of %d", n, o.Requests)
				}
				if total.Dials.TLS == nil || total.Dials.TLS.TotalCount() != int64(o.Connections) {
					t.Error("handshakes were not timed")
				}
			})
		}
	}
}

// TestTLSBig: requests and replies larger than what sockets, records and the buffer take at once.
func TestTLSBig(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{TLS: true})
	for _, size := range []int{16 << 10, 300_000, 3 << 20} {
		for _, command := range []string{"set", "get"} {
			t.Run(fmt.Sprint(command, size), func(t *testing.T) {
				o := options(t, to(i))
				o.Workload = oneKey(t, command, size)
				o.Requests, o.Pipeline, o.Connections = 64, 8, 2
				total, r := sum(t, t.Context(), o)
				clean(t, total, r, o.Requests)
				if total.Ops[0].Misses != 0 {
					t.Errorf("%d misses", total.Ops[0].Misses)
				}
				moved := max(total.BytesIn, total.BytesOut)
				if moved < o.Requests*int64(size) {
					t.Errorf("%d bytes moved, want at least %d", moved, o.Requests*int64(size))
				}
			})
		}
	}
}

func TestUnixSocket(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range fleettest.Among(servers.Redis506, servers.Redis7015, servers.Redis802) {
		i := start(t, name, fleet.Spec{UnixSocket: true})
		for _, size := range []int{3, 500_000} {
			o := options(t, target.Target{Network: "unix", Path: i.Socket})
			o.Workload = oneKey(t, "set", size)
			o.Requests, o.Pipeline = 200, 8
			total, r := sum(t, t.Context(), o)
			clean(t, total, r, o.Requests)
			o.Workload = oneKey(t, "get", size)
			total, r = sum(t, t.Context(), o)
			clean(t, total, r, o.Requests)
			if total.Ops[0].Misses != 0 {
				t.Errorf("%s, %d bytes: %d misses", name, size, total.Ops[0].Misses)
			}
		}
	}
}

// TestLogin: users, protocols and databases.
func TestLogin(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, tt := range []struct {
		name     servers.Name
		user     string
		protocol int
	}{
		{servers.Redis506, "", 0},
		{servers.Redis506, "", 2},
		{servers.Redis6016, "app", 3},
		{servers.Redis7015, "", 0},
		{servers.Redis7015, "app", 2},
		{servers.Redis802, "app", 3},
		{servers.Valkey811, "app", 3},
	} {
		if len(fleettest.Among(tt.name)) == 0 {
			continue
		}
		t.Run(fmt.Sprint(tt.name, tt.protocol), func(t *testing.T) {
			t.Parallel()
			spec := fleet.Spec{Password: "p"}
			if tt.user != "" {
				spec.ACL = []string{"user app on >p ~slowpath:* +get +set +ping +client +select +hello"}
			}
			i := start(t, tt.name, spec)
			o := options(t, to(i))
			o.Target.User, o.Target.Password, o.Target.Protocol, o.Target.DB = tt.user, "p", tt.protocol, 5
			o.Workload = oneKey(t, "set", 3)
			total, r := sum(t, t.Context(), o)
			clean(t, total, r, o.Requests)
			o.Workload = oneKey(t, "get", 3)
			total, r = sum(t, t.Context(), o)
			clean(t, total, r, o.Requests)
			if total.Ops[0].Misses != 0 {
				t.Errorf("%d misses", total.Ops[0].Misses)
			}
			keyspace, err := i.Do(t.Context(), "INFO", "keyspace")
			if err != nil || !strings.Contains(fmt.Sprint(keyspace), "db5:keys=1,") {
				t.Errorf("%v, %v: no database 5", keyspace, err)
			}
		})
	}
}
