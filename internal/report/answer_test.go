package report

import (
	"testing"

	"slowpath/internal/diagnose/remedy"
)

// TestProvenInstead: the answer names a proven step beside a first one that is not; never a setting of a library.
func TestProvenInstead(t *testing.T) {
	proven, failed := &remedy.Proof{Proven: true}, &remedy.Proof{Why: "callers still lost time"}
	for _, c := range []struct {
		name  string
		steps []remedy.Step
		want  int
	}{
		{"no step", nil, 0},
		{"nothing tried", []remedy.Step{{ID: "a"}, {ID: "b"}}, 0},
		{"the first is proven", []remedy.Step{{ID: "a", Proof: proven}, {ID: "b", Proof: proven}}, 0},
		{"the first failed", []remedy.Step{{ID: "a", Proof: failed}, {ID: "b"}, {ID: "c", Proof: proven}}, 2},
		{"a proven setting comes first", []remedy.Step{{ID: "a", Library: "Jedis", Proof: proven}, {ID: "b"}}, 0},
		{
			"of several libraries it is not known which is in use",
			[]remedy.Step{{ID: "a", Library: "Jedis"}, {ID: "a", Library: "redigo", Proof: proven}},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := provenInstead(c.steps); got != c.want {
				t.Errorf("step %d, want %d", got, c.want)
			}
		})
	}
}
