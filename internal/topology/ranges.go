package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/cluster"
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

// span is a duration with three significant digits.
func span(d time.Duration) string {
	v, unit := float64(d)/1e3, "µs"
	for _, next := range []string{"ms", "s"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1e3, next
	}
	return digits(v) + " " + unit
}

// interval is a duration without parts that are zero: 5m, and not 5m0s.
func interval(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// digits prints three significant ones.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.0995:
		return fmt.Sprintf("%.4f", v)
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// things is a number of things: "1 node", "3 nodes".
func things(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
