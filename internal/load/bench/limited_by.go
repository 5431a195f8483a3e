package bench

import (
	"fmt"
	"strings"

	"slowpath/internal/load/bottleneck"
)

// limitedByText is the bottleneck of a load on one line. It begins with a warning where that is the generator.
func limitedByText(by string, v bottleneck.Verdict) string {
	text := fmt.Sprintf("limited by %s: %s", by, v.Sentence)
	if v.GeneratorLimited {
		text = "LIMITED BY THE GENERATOR OR ITS HOST, " + text
	}
	return strings.Join(strings.Fields(text), " ")
}

// LimitedBy ends the lines of a load that the generator limited with a comment, "# LIMITED BY …": who reads them
// without looking at comments fails on it. Other loads have no comment.
func (c *CSV) LimitedBy(by string, v bottleneck.Verdict) {
	if v.GeneratorLimited {
		c.write([]string{"# " + strings.NewReplacer(",", ";", `"`, "'").Replace(limitedByText(by, v))})
	}
}

// LimitedBy writes as a comment what limited the load.
func (l *HistogramLog) LimitedBy(by string, v bottleneck.Verdict) {
	l.keep(l.log.OutputComment("[" + limitedByText(by, v) + "]"))
}
