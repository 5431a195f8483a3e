package benching

import (
	"slices"
	"testing"
)

func TestSplitKinds(t *testing.T) {
	kinds, addresses := splitKinds([]string{
		"10.0.0.5:6379", "cluster:10.0.0.6:7000", "proxy:10.0.0.7", "standalone:redis://10.0.0.8:1", "cluster:7000",
		"cluster", "proxy::22121", "other:10.0.0.9:1", "proxy:[::1]:22121",
	})
	want := []string{"", "cluster", "proxy", "standalone", "", "", "proxy", "", "proxy"}
	if !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	if want := []string{
		"10.0.0.5:6379", "10.0.0.6:7000", "10.0.0.7", "redis://10.0.0.8:1", "cluster:7000", "cluster", ":22121",
		"other:10.0.0.9:1", "[::1]:22121",
	}; !slices.Equal(addresses, want) {
		t.Errorf("%q, want %q", addresses, want)
	}
}
