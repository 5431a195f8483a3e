//go:build linux

package benching

import (
	"testing"

	"slowpath/internal/load/engine"
)

// TestStanding: connections that are closed by plan are not shown as down.
func TestStanding(t *testing.T) {
	for _, c := range []struct {
		o    engine.Options
		want int
	}{
		{engine.Options{Connections: 50}, 50},
		{engine.Options{Connections: 50, PerCall: true}, 0},
		{engine.Options{Connections: 50, ReconnectEvery: 10}, 0},
	} {
		if got := expectedConnections(&c.o); got != c.want {
			t.Errorf("%+v: %d, want %d", c.o, got, c.want)
		}
	}
}
