//go:build linux

package bench

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// TestWritesKeys: it is known which commands write keys.
func TestWritesKeys(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	at, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for command, writes := range map[string]bool{
		"get": false, "mget": false, "ping": false, "publish": false,
		"set": true, "getset": true, "incr": true,
		"LMOVE a:{key} b:{key} LEFT RIGHT": true, "GETEX key:{key} EX 100": true, "evalsha": true,
		"MULTI; SET key:{key} x; EXEC": true,
	} {
		w, err := workload.Compile(workload.Options{Commands: []string{command}, Keys: workload.Keys{High: 9}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := OpenData(t.Context(), at, false, w)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if d.WritesKeys() != writes {
			t.Errorf("%s writes keys: %v, want %v", command, d.WritesKeys(), writes)
		}
	}
}
