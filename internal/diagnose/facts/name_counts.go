package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NameCounts is how often each name was seen.
type NameCounts map[string]int

// Total is the sum of all counts.
func (t NameCounts) Total() (all int) {
	for _, k := range t {
		all += k
	}
	return all
}

// Top are the n most frequent names, without the empty one.
func (t NameCounts) Top(n int) []string {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	return names[:min(n, len(names))]
}

// List joins the n most frequent names for a message: "a, b and 3 more".
func (t NameCounts) List(n int) string {
	s := strings.Join(t.Top(n), ", ")
	if more := len(t) - n; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// KeysByValue lists the keys, those with the largest value first.
func KeysByValue(m map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

// WordSet is the set of the words of a text.
func WordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
