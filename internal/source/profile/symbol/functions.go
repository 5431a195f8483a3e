package symbol

import (
	"cmp"
	"slices"
	"strings"
)

// function is a name and where its code is: [start, start+size). A size of 0 reaches to the next one.
type function struct {
	start, size uint64
	name        string
	rank        int // of several names of one address the one with the lowest rank is used
}

// table is functions in the order of their addresses, one for each address.
type table []function

// tableOf sorts functions and keeps one name for each address.
func tableOf(all []function) table {
	slices.SortStableFunc(all, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank), cmp.Compare(underscores(a.name),
			underscores(b.name)), cmp.Compare(len(a.name), len(b.name)))
	})
	return slices.CompactFunc(all, func(a, b function) bool { return a.start == b.start })
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// find gives the function that an address is in.
func (t table) find(addr uint64) (function, bool) {
	i, exact := slices.BinarySearchFunc(t, addr, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !exact {
		i--
	}
	if i < 0 {
		return function{}, false
	}
	f := t[i]
	end := f.start + f.size
	if f.size == 0 {
		end = ^uint64(0)
		if i+1 < len(t) {
			end = t[i+1].start
		}
	}
	return f, addr < end
}
