package workload

import (
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

func compiled(t testing.TB, o Options) *Workload {
	t.Helper()
	w, err := Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// commandsOf splits what a stream appended.
func commandsOf(t *testing.T, b []byte) [][]string {
	t.Helper()
	r := resp.NewReader(strings.NewReader(string(b)), resp.Limits{})
	var out [][]string
	for {
		v, err := r.Read()
		if err != nil {
			return out
		}
		var args []string
		for _, e := range v.Elems {
			if e.Kind != resp.BulkString {
				t.Fatalf("%v in %q", e.Kind, b)
			}
			args = append(args, e.Text())
		}
		out = append(out, args)
	}
}
