package experiment

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/stats"
)

// verdictText is a verdict in words: "faster by 4.0 % ± 1.0 %".
func verdictText(v stats.Comparison) string {
	words := strings.ReplaceAll(v.Verdict, "-", " ")
	switch v.Verdict {
	case NoDifference:
		return fmt.Sprintf("%s (%s to %s %%)", words, signed(v.Low), signed(v.High))
	case Faster, Slower:
		if v.High-v.Change >= math.Abs(v.Change) { // a long tail on one side, which ± would show on both
			return fmt.Sprintf("%s by %s %% (%s to %s %%)", words, percent(math.Abs(v.Change)), signed(v.Low),
				signed(v.High))
		}
		return fmt.Sprintf("%s by %s %% ± %s %%", words, percent(math.Abs(v.Change)),
			percent(max(v.Change-v.Low, v.High-v.Change)))
	}
	return words
}

func signed(share float64) string {
	if share < 0 {
		return "-" + percent(-share)
	}
	return "+" + percent(share)
}

// percent has a digit behind the point below ten.
func percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.1f", share*100)
	}
	return fmt.Sprintf("%.0f", share*100)
}
