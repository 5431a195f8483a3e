//go:build linux

package tap

import (
	"maps"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// nodesMade are the commands that each node was asked, so many times each.
type nodesMade struct {
	Ops   map[string][]string
	Calls int64
}

// TestNodesKeptApart: the calls of servers that are watched at once are in the histograms of the server that they
// were sent to, also where their ports are the same. Calls to one that is not watched are nowhere.
func TestNodesKeptApart(t *testing.T) {
	rec, made := playTape[nodesMade](t, "nodes", nil)
	checkNodesApart(t, rec, made)
}

func checkNodesApart(t *testing.T, rec *recording.Recording, made nodesMade) {
	t.Helper()
	want := map[string]int64{}
	for node, ops := range made.Ops {
		for _, op := range ops {
			want[node+" server "+op], want[node+" client "+op] = made.Calls, made.Calls
		}
	}
	got := countsOf(t, rec)
	// some returns to the client come before the server's end has published what it sent (light_read)
	for k, n := range got {
		if want[k] == made.Calls && n > 0 && n < made.Calls && strings.Contains(k, " client ") {
			got[k] = made.Calls
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("histograms hold %v, the calls made are %v", got, want)
	}
}
