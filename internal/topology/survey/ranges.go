package survey

import (
	"fmt"
	"strings"

	"slowpath/internal/wire/cluster"
)

// rangeTexts formats each range: 5461, or 0-5460.
func rangeTexts(ranges []cluster.Range) []string {
	out := make([]string, len(ranges))
	for i, r := range ranges {
		out[i] = r.String()
	}
	return out
}

// joinFew joins the first texts of a list, and counts the others.
func joinFew(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
