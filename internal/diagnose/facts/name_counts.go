package facts

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Tally counts names.
type NameCounts map[string]int

func (t NameCounts) Total() (all int) {
	for _, k := range t {
		all += k
	}
	return all
}

// Top are the most frequent names.
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

// List joins the most frequent names for people.
func (t NameCounts) List(n int) string {
	s := strings.Join(t.Top(n), ", ")
	if more := len(t) - n; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// SortedByNs lists the keys, those with the largest value first.
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

func WordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
