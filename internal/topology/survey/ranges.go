package survey

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/wire/cluster"
)

// rangesOf are slots as the fewest ranges.
func rangesOf(slots []int) []string {
	slices.Sort(slots)
	var out []string
	for i := 0; i < len(slots); {
		j := i
		for j+1 < len(slots) && slots[j+1] == slots[j]+1 {
			j++
		}
		out = append(out, rangeText(slots[i], slots[j]))
		i = j + 1
	}
	return out
}

func rangeText(from, to int) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

func texts(ranges []cluster.Range) []string {
	out := make([]string, len(ranges))
	for i, r := range ranges {
		out[i] = rangeText(int(r.From), int(r.To))
	}
	return out
}

// few joins texts, and counts those for which there is no room.
func few(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
