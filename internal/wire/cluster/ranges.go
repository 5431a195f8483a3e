package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// String is the range as CLUSTER NODES has it: 5461, or 0-5460.
func (r Range) String() string {
	if r.From == r.To {
		return strconv.Itoa(int(r.From))
	}
	return strconv.Itoa(int(r.From)) + "-" + strconv.Itoa(int(r.To))
}

// Ranges are the slots as the fewest ranges in ascending order. It sorts the argument.
func Ranges(slots []uint16) []Range {
	slices.Sort(slots)
	var out []Range
	for _, slot := range slots {
		if last := len(out) - 1; last >= 0 && int(slot) <= int(out[last].To)+1 {
			out[last].To = slot
			continue
		}
		out = append(out, Range{slot, slot})
	}
	return out
}

// FormatRanges joins ranges with commas: 0-99,200. Of none it is empty.
func FormatRanges(ranges []Range) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}
