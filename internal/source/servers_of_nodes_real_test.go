//go:build linux

package source

import (
	"context"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// metaSink keeps the metas of a watch.
type metaSink struct {
	restartCounter
	meta map[string]string
}

func (s *metaSink) SetMeta(key, value string) { s.meta[key] = value }

// TestServersOfNodes: a watch of several targets says what answers at each of them.
func TestServersOfNodes(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	sink, want := &metaSink{meta: map[string]string{}}, map[string]string{}
	var targets []target.Target
	for _, name := range []servers.Name{servers.Redis7015, servers.Valkey811} {
		i := fleettest.Start(t, name, fleet.Spec{})
		to, err := target.Parse(i.Addr)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, to)
		want[i.Addr] = strings.Replace(string(name), "-", " ", 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{Targets: targets, NoTap: true, NoHost: true, NoProbe: true, Started: func(int) { cancel() }}
	if err := Run(ctx, o, sink); err != nil {
		t.Fatal(err)
	}
	rec := recording.Recording{Meta: sink.meta}
	for address, server := range want {
		if got := rec.ServerOf(address); got != server || rec.Servers()[address].Kind != "standalone" {
			t.Errorf("%s is %q, want %q: %v", address, got, server, rec.Servers())
		}
	}
}
