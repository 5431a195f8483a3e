package bench

import (
	"fmt"
	"strings"

	"slowpath/internal/load/bottleneck"
)

// limitText is what limited a load, on one line; one that the generator limited is marked first.
func limitText(by string, v bottleneck.Verdict) string {
	text := fmt.Sprintf("limited by %s: %s", by, v.Sentence)
	if v.GeneratorLimited {
		text = "LIMITED BY THE GENERATOR OR ITS HOST, " + text
	}
	return strings.Join(strings.Fields(text), " ")
}

// Limit ends the lines of a load that the generator limited with a comment, "# LIMITED BY …": who reads them without
// looking at comments is to stumble. Of other loads there is no comment.
func (c *CSV) Limit(by string, v bottleneck.Verdict) {
	if v.GeneratorLimited {
		c.write([]string{"# " + strings.NewReplacer(",", ";", `"`, "'").Replace(limitText(by, v))})
	}
}

// Limit writes as a comment what limited the load.
func (l *HistogramLog) Limit(by string, v bottleneck.Verdict) {
	l.keep(l.log.OutputComment("[" + limitText(by, v) + "]"))
}
