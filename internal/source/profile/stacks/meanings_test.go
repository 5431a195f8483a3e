package stacks

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Stacks as the libraries make them, from the caller to the callee; those between are left out where they say nothing.
func TestMeanings(t *testing.T) {
	for name, tt := range map[string]struct {
		stack string
		id    string
		state string
	}{
		"v6 cluster, waiting": {"main.main.func1 > github.com/go-redis/redis.(*cmdable).Get > " +
			"github.com/go-redis/redis.(*ClusterClient).cmdInfo > github.com/go-redis/redis.(*cmdsInfoCache).Get > " +
			"github.com/go-redis/redis/internal.(*Once).Do > sync.(*Mutex).Lock > internal/sync.(*Mutex).Lock > " +
			"internal/sync.(*Mutex).lockSlow", "cmdinfo-once", LockWait},
		"v6 cluster, holding": {
			"github.com/go-redis/redis.(*cmdsInfoCache).Get > " +
				"github.com/go-redis/redis/internal.(*Once).Do > " +
				"github.com/go-redis/redis.(*cmdsInfoCache).Get.func1 > " +
				"github.com/go-redis/redis.(*ClusterClient).cmdsInfo > " +
				"github.com/go-redis/redis/internal/proto.(*Reader).ReadArrayReply > net.(*conn).Read", "cmdinfo-load",
			LockWait,
		},
		"v8 ring, waiting": {"github.com/go-redis/redis/v8.(*Ring).cmdInfo > " +
			"github.com/go-redis/redis/v8.(*cmdsInfoCache).Get > github.com/go-redis/redis/v8/internal.(*Once).Do > " +
			"sync.(*Mutex).Lock", "cmdinfo-once", LockWait},
		"v9 pool": {"github.com/redis/go-redis/v9.(*baseClient).process > " +
			"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).Get > " +
			"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).waitTurn > " +
			"github.com/redis/go-redis/v9/internal.(*FastSemaphore).Acquire", "go-redis-pool", PoolWait},
		"v6 pool": {"github.com/go-redis/redis/internal/pool.(*ConnPool).Get > " +
			"github.com/go-redis/redis/internal/pool.(*ConnPool).waitTurn", "go-redis-pool", PoolWait},
		"v9 reply": {
			"github.com/redis/go-redis/v9.(*Client).Get > " +
				"github.com/redis/go-redis/v9/internal/proto.(*Reader).ReadLine > bufio.(*Reader).fill > " +
				"net.(*conn).Read",
			"go-redis-reply", Reply,
		},
		"v8 reaper": {"github.com/go-redis/redis/v8/internal/pool.(*ConnPool).reaper", "go-redis-reaper", Idle},
		"redigo pool": {"main.main > github.com/gomodule/redigo/redis.(*Pool).GetContext > " +
			"github.com/gomodule/redigo/redis.(*Pool).waitVacantConn", "redigo-pool", PoolWait},
		"rueidis pool": {"github.com/redis/rueidis.(*mux).blocking > github.com/redis/rueidis.(*pool).Acquire > " +
			"sync.(*Cond).Wait", "rueidis-pool", PoolWait},
		"rueidis writer": {
			"github.com/redis/rueidis.(*pipe)._backgroundWrite > sync.(*Cond).Wait", "rueidis-pipe",
			Idle,
		},
		"Jedis pool": {"redis.clients.jedis.JedisPool.getResource > redis.clients.jedis.util.Pool.getResource > " +
			"org.apache.commons.pool2.impl.GenericObjectPool.borrowObject > " +
			"org.apache.commons.pool2.impl.LinkedBlockingDeque.pollFirst > " +
			"java.util.concurrent.locks.LockSupport.parkNanos", "pool2-wait", PoolWait},
		"another's mutex": {"main.main > example.com/cache.(*Cache).Get > sync.(*Mutex).Lock", "go-mutex", LockWait},
		"nothing known":   {"main.main > net/http.ListenAndServe", "", ""},
		"a similar name":  {"example.com/github.com/go-redis/redis.(*cmdsInfoCache).Get", "", ""},
	} {
		m, ok := Builtin().Of(strings.Split(tt.stack, " > "))
		if ok != (tt.id != "") || m.ID != tt.id || m.State != tt.state {
			t.Errorf("%s: %s %s (%v), want %s %s", name, m.ID, m.State, ok, tt.id, tt.state)
		}
	}
}

func TestOwnTableComesFirst(t *testing.T) {
	own, err := Parse("# ours\n\nour-pool\tpool-wait\tour pool\ta lease\tours.(*Pool).Lease > %Lock\n")
	if err != nil {
		t.Fatal(err)
	}
	m, ok := append(own, Builtin()...).Of([]string{"ours.(*Pool).Lease", "sync.(*Mutex).Lock"})
	if !ok || m.ID != "our-pool" || m.Frame([]string{"main.main", "ours.(*Pool).Lease"}) != "ours.(*Pool).Lease" {
		t.Errorf("%+v", m)
	}
}

func TestTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a\tpool-wait\tb\tc":                     "line 1: 4 columns",
		"# x\na\twaiting\tb\tc\td":               `line 2: state "waiting"`,
		"\tpool-wait\tb\tc\td":                   "must not be empty",
		"a\tpool-wait\tb\tc\td > ":               "a frame is empty",
		strings.Repeat("#", maxTableBytes+1):     "more than",
		strings.Repeat("a\texec\t\tb\tc\n", 3e3): "more than 2000 lines",
	} {
		if _, err := Parse(text); !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestEveryLineCanCount: a line that no stack of its own frames reaches comes after one that is more general.
func TestEveryLineCanCount(t *testing.T) {
	for _, m := range Builtin() {
		var frames []string
		for _, p := range m.frames {
			frames = append(frames, strings.Join(p.parts, "x"))
		}
		if got, _ := Builtin().Of(frames); got.ID != m.ID {
			t.Errorf("%s: %v counts as %s", m.ID, frames, got.ID)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(builtin, "sync.(*Mutex).Lock")
	f.Add("a\texec\t\tb\t%x%%y > z%\n", "axbyz")
	f.Fuzz(func(t *testing.T, text, frame string) {
		table, err := Parse(text)
		if err != nil {
			return
		}
		if m, ok := table.Of([]string{frame, frame}); ok && !slices.Contains(states, m.State) {
			t.Errorf("%+v", m)
		}
	})
}
