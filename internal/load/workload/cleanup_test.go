package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// The prefill writes each key of the range once, whatever the number of streams is.
func TestPrefillWritesEachKeyOnce(t *testing.T) {
	w := compiled(t, Options{
		Commands: []string{"get", "hget", "GET only", "PFADD x{unique} 1", "JSON.GET j:{key}"},
		Keys:     Keys{Low: 7, High: 109}, Sizes: FixedSize(3),
	})
	p, seen := w.Prefill(), map[string]int{}
	for i := range 4 {
		for s := p.Stream(1, i, 4); ; {
			b, _, ok := s.Next(nil)
			if !ok {
				break
			}
			seen[commandsOf(t, b)[0][1]]++
		}
	}
	if len(seen) != 2*103+1 || int(p.Requests()) != len(seen) || seen["slowpath:key:000000000007"] != 1 ||
		seen["slowpath:hash:000000000109"] != 1 || seen["slowpath:only"] != 1 {
		t.Errorf("%d keys, %d requests: %v", len(seen), p.Requests(), seen)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was written %d times", key, n)
		}
	}
	if want := []string{"slowpath:x{unique}", "slowpath:j:{key}"}; !slices.Equal(p.Skipped, want) {
		t.Errorf("left out: %v, want %v", p.Skipped, want)
	}
}

// Both clean-ups remove the keys of the workload and only these: not those of another workload under the prefix, not
// those of users.
func TestCleanup(t *testing.T) {
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

// spoiler answers in place of a server, or passes on.
type spoiler struct {
	node   Node
	before func(commands [][]string) ([]resp.Value, bool)
	most   int
}

func (s *spoiler) Pipeline(ctx context.Context, commands [][]string) ([]resp.Value, error) {
	s.most = max(s.most, len(commands))
	if replies, ok := s.before(commands); ok {
		return replies, nil
	}
	return s.node.Pipeline(ctx, commands)
}

func TestCleanupWithoutUnlink(t *testing.T) {
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

// A server that ignores MATCH, or lies, cannot make the clean-up touch keys outside of the prefix.
func TestCleanupTrustsNoServer(t *testing.T) {
	w := compiled(t, Options{Commands: []string{"set"}, KeyPrefix: "a:", Sizes: FixedSize(3)})
	asked := ""
	liar := &spoiler{before: func(commands [][]string) ([]resp.Value, bool) {
		if commands[0][0] == "SCAN" {
			key := func(s string) resp.Value { return resp.Value{Kind: resp.BulkString, Str: []byte(s)} }
			keys := resp.Value{Kind: resp.Array, Elems: []resp.Value{
				key("theirs"), key("slowpath:b:x"),
				key("slowpath:a:key:000000000001"),
			}}
			return []resp.Value{{Kind: resp.Array, Elems: []resp.Value{key("0"), keys}}}, true
		}
		asked += fmt.Sprint(commands)
		return slices.Repeat([]resp.Value{{Kind: resp.Integer, Int: 1}}, len(commands)), true
	}}
	if removed, err := w.CleanupByScan(t.Context(), liar); removed != 1 || err != nil ||
		asked != "[[UNLINK slowpath:a:key:000000000001]]" {
		t.Errorf("removed %d, %v: %s", removed, err, asked)
	}
}
