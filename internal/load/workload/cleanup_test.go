package workload

import (
	"context"
	"fmt"
	"slices"
	"testing"

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
