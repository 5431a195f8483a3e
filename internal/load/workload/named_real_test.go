package workload

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

func tenKeys(commands ...string) Options {
	return Options{Commands: commands, Keys: Keys{High: 9}, Sizes: Sizes{low: 3, high: 40}}
}

// Every named command, after its prefill, gives no error and finds something at first, on an old and on new servers.
// All that it leaves has the prefix, and the clean-up finds it, and not what is beside it.
func TestNamedCommandsOnServers(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range fleettest.Among(servers.Redis506, servers.Redis7015, servers.Valkey811) {
		t.Run(string(name), func(t *testing.T) {
			c := dial(t, start(t, name))
			foreign := []string{
				"key:000000000001", "slowpathkey", "slowpath", "xslowpath:key:000000000001",
				"slowpath:other",
			}
			for _, key := range foreign {
				c.do("SET", key, "theirs")
			}
			for _, name := range slices.Sorted(maps.Keys(named)) {
				runNamed(t, c, name)
				if n, _ := c.do("DBSIZE").Integer(); n != int64(len(foreign)) {
					t.Errorf("%s: %d keys after the clean-up: %v", name, n, c.do("KEYS", "*"))
				}
			}
			for _, key := range foreign {
				if got := c.do("GET", key).Text(); got != "theirs" {
					t.Errorf("%s is %q", key, got)
				}
			}
		})
	}
}

func runNamed(t *testing.T, c *client, name string) {
	t.Helper()
	w := compiled(t, tenKeys(name))
	c.setup(w)
	if p := c.prefill(w); len(p.Skipped) > 0 {
		t.Errorf("%s: not prefilled: %v", name, p.Skipped)
	}
	s := w.Stream(7, 0, 1)
	for i := range 30 {
		b, r := s.Next(nil)
		for _, v := range c.send(b, int(r.Replies)) {
			if err := v.Err(); err != nil {
				t.Fatalf("%s: %v in reply to %q", name, err, b)
			}
			if i == 0 && w.Ops[r.Op].Reads && v.IsNull() {
				t.Errorf("%s: a miss after the prefill: %q", name, b)
			}
		}
	}
	if _, err := w.CleanupByScan(t.Context(), c); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// A hundred thousand pushes to ten lists leave at most some thousand elements each.
func TestListsDoNotGrowForEver(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	c := dial(t, start(t, servers.Redis7015))
	for _, push := range []string{"lpush", "rpush"} {
		w := compiled(t, tenKeys(push))
		s := w.Stream(1, 0, 1)
		for range 100 {
			var b []byte
			for range 1000 {
				b, _ = s.Next(b)
			}
			c.send(b, 1000)
		}
		for key := range 10 {
			n, ok := c.do("LLEN", fmt.Sprintf("slowpath:list:%012d", key)).Integer()
			// Between two trims there are 100 pushes on average; 1200 in a row without one have a probability of e^-12.
			if !ok || n > 2200 || n < 100 {
				t.Errorf("%s: list %d has %d elements", push, key, n)
			}
		}
		if _, err := w.CleanupByKeys(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
}
