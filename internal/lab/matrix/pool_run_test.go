//go:build linux

package matrix

import (
	"testing"
)

func TestPoolOptions(t *testing.T) {
	for mode, own := range map[string]bool{Borrow: false, PerThread: true} {
		r := PoolRow{Mode: mode, Pool: 7, Callers: 9}
		o := r.options(FullPools().matrix().options(Standalone))
		if o.Workers != 9 || o.PoolSize != 7 || o.MaxIdle != 7 || o.OwnConnections != own || o.PoolTimeout == 0 {
			t.Errorf("%s: %+v", mode, o)
		}
	}
}
