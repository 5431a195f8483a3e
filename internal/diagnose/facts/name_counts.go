package facts

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
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
	var names []string
	for name := range t {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b)) })
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
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if m[keys[i]] != m[keys[j]] {
			return m[keys[i]] > m[keys[j]]
		}
		return keys[i] < keys[j]
	})
	return keys
}

// WordSet is the set of the words of a text.
func WordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
