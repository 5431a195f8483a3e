package workload

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// Both clean-ups remove the keys of the workload and only these: not those of another workload under the prefix, not
// those of users.
func TestCleanup(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015)
	c := dial(t, i)
	w := compiled(t, Options{
		Commands: []string{"set", "hset", "MSET m*[{key:3} 1"}, Keys: Keys{Low: 100, High: 1399},
		Sizes: FixedSize(3), KeyPrefix: "a:",
	})
	foreign := []string{
		"slowpath:a:key:{0000000001}1", "slowpath:a:key:{0000000001}xx0", "slowpath:a:other",
		"slowpath:key:{0000000001}11", "slowpath", "a:key:{0000000001}11", "x", "slowpath:a:mXX{0000000001}11",
	}
	for _, clean := range []func(context.Context, Node) (int64, error){w.CleanupByScan, w.CleanupByKeys} {
		for _, key := range foreign {
			c.do("SET", key, "theirs")
		}
		c.prefill(w)
		if n, _ := c.do("DBSIZE").Integer(); n != 3*1300+int64(len(foreign)) {
			t.Fatalf("%d keys", n)
		}
		removed, err := clean(t.Context(), c)
		if err != nil || removed != 3*1300 {
			t.Errorf("removed %d: %v", removed, err)
		}
		for _, key := range foreign {
			if c.do("GET", key).Text() != "theirs" {
				t.Errorf("%s is gone", key)
			}
		}
		if n, _ := c.do("DBSIZE").Integer(); n != int64(len(foreign)) {
			t.Errorf("%d keys remain", n)
		}
	}
	removed, err := CleanupPrefix(t.Context(), c, "a:")
	if n, _ := c.do("DBSIZE").Integer(); err != nil || removed != 4 || n != 4 {
		t.Errorf("removed %d of the prefix: %v; %d remain", removed, err, n)
	}
}

func TestCleanupWithoutUnlink(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	c := dial(t, start(t, servers.Redis7015))
	w := compiled(t, Options{Commands: []string{"set"}, Keys: Keys{High: 2999}, Sizes: FixedSize(3)})
	c.prefill(w)
	old := &spoiler{node: c, before: func(commands [][]string) ([]resp.Value, bool) {
		if commands[0][0] != "UNLINK" {
			return nil, false
		}
		return slices.Repeat([]resp.Value{{Kind: resp.Error, Str: []byte("ERR unknown command 'UNLINK'")}},
			len(commands)), true
	}}
	removed, err := w.CleanupByScan(t.Context(), old)
	if err != nil || removed != 3000 || old.most > removePerRound {
		t.Errorf("removed %d, %d in a round: %v", removed, old.most, err)
	}
}

func TestCleanupThatCannotEnd(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	c := dial(t, start(t, servers.Redis7015))
	w := compiled(t, Options{Commands: []string{"set"}, Keys: Keys{High: 2999}, Sizes: FixedSize(3)})
	c.prefill(w)
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	cancelling := &spoiler{node: c, before: func([][]string) ([]resp.Value, bool) {
		if rounds++; rounds == 4 {
			cancel()
		}
		return nil, false
	}}
	removed, err := w.CleanupByKeys(ctx, cancelling)
	if !errors.Is(err, context.Canceled) || removed != 4*removePerRound {
		t.Errorf("cancelled: removed %d: %v", removed, err)
	}
	for what, reply := range map[string]resp.Value{
		"an error": {Kind: resp.Error, Str: []byte("NOPERM no")}, "nonsense": {Kind: resp.Integer, Int: 3},
	} {
		refusing := &spoiler{before: func(commands [][]string) ([]resp.Value, bool) {
			return slices.Repeat([]resp.Value{reply}, len(commands)), true
		}}
		if _, err := w.CleanupByScan(t.Context(), refusing); !errors.Is(err, ErrNotAll) {
			t.Errorf("%s: %v", what, err)
		}
	}
	part := compiled(t, Options{Commands: []string{"SET a{rand:1-5} x", "SET b x"}})
	c.do("SET", "slowpath:b", "x")
	if removed, err := part.CleanupByKeys(t.Context(), c); removed != 1 || !errors.Is(err, ErrNotAll) ||
		!strings.Contains(err.Error(), "slowpath:a{rand:1-5}") {
		t.Errorf("removed %d: %v", removed, err)
	}
}
