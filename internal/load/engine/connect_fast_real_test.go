package engine

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// TestConnectFast: usual connections are opened without dial, and all others are left to it.
func TestConnectFast(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	plain := start(t, servers.Redis7015, fleet.Spec{})
	locked := start(t, servers.Redis7015, fleet.Spec{Password: "secret"})
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refuses := nobody.Addr().(*net.TCPAddr).Port
	nobody.Close()

	with := func(of target.Target, change func(*target.Target)) target.Target { change(&of); return of }
	for _, c := range []struct {
		name  string
		to    target.Target
		left  bool
		error error // of the load, nil: none
	}{
		{name: "plain", to: to(plain)},
		{name: "IPv4 in IPv6", to: with(to(plain), func(x *target.Target) { x.Host = "::ffff:127.0.0.1" })},
		{name: "database and RESP3", to: with(to(plain), func(x *target.Target) { x.DB, x.Protocol = 3, 3 })},
		{name: "password", to: with(to(locked), func(x *target.Target) { x.Password = "secret" })},
		{name: "a name", to: with(to(plain), func(x *target.Target) { x.Host = "localhost" }), left: true},
		{name: "no password needed", to: with(to(plain), func(x *target.Target) { x.Password = "given" }), left: true},
		{
			name: "wrong password", to: with(to(locked), func(x *target.Target) { x.Password = "wrong" }), left: true,
			error: session.ErrWrongPassword,
		},
		{
			name: "refused", to: with(to(plain), func(x *target.Target) { x.Port = refuses }), left: true,
			error: target.ErrRefused,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			const connections = 100 // more than are opened at a time
			o := options(t, c.to)
			o.Connections, o.Requests = connections, 1000
			r := &run{Options: o}
			w, err := newWorker(r, 0)
			if err != nil {
				t.Fatal(err)
			}
			r.workers = []*worker{w}
			defer r.close()
			specs := make([]connSpec, connections)
			for i := range specs {
				specs[i] = connSpec{to: c.to, worker: w, index: i}
			}
			left := r.connectFast(t.Context(), specs)
			if want := map[bool]int{true: connections}[c.left]; len(left) != want || len(w.inbox) != connections-want {
				t.Errorf("%d were left and %d stand, of %d", len(left), len(w.inbox), connections)
			}
			for _, d := range w.inbox {
				if d.fd < 0 || d.opening.Connect <= 0 || d.opening.Handshake <= 0 || d.end < d.start {
					t.Fatalf("%+v", d)
				}
			}
			total := o.NewTally()
			o.OnTally = total.Add
			switch result, err := Run(t.Context(), o); {
			case c.error != nil && !errors.Is(err, c.error):
				t.Errorf("%v, want %v", err, c.error)
			case c.error == nil && err != nil:
				t.Error(err)
			case c.error == nil:
				clean(t, total, result, 1000)
			}
		})
	}
}

// TestConnectFastSetsName: CLIENT LIST shows the name, and the database that was asked for.
func TestConnectFastSetsName(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Target.DB = 5
	var list string
	o.Begin = func(ctx context.Context) error { // the connections are open
		v, err := i.Do(ctx, "CLIENT", "LIST")
		list, _ = v.(string)
		return err
	}
	sum(t, t.Context(), o)
	named := 0
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name="+clientName+" ") && strings.Contains(line, " db=5 ") {
			named++
		}
	}
	if named != o.Connections {
		t.Errorf("%d of %d connections are named and in their database:\n%s", named, o.Connections, list)
	}
}
