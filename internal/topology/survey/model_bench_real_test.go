package survey

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/stats"
	"slowpath/internal/topology/cost"
)

// checkedMaps are those at which the model is checked: none of them is in reference.tsv.
var checkedMaps = []fleet.MapSpec{
	{Masters: 6, RangesPerMaster: 1},
	{Masters: 80, RangesPerMaster: 6},
	{Masters: 300, RangesPerMaster: 6},
}

// BenchmarkModel measures the commands on maps of 6, 80 and 300 nodes, and compares with what the model says of each
// from the measurement on each other of them, as slowpath topology does from the one cluster that it sees:
//
//	go test -run '^$' -bench Model -benchtime 1x ./internal/topology/survey
func BenchmarkModel(b *testing.B) {
	needs.Real(b, needs.RedisServer)
	for b.Loop() {
		var text strings.Builder
		var errors []float64
		for _, name := range versions() {
			by := map[cost.Command][]cost.Point{}
			for _, p := range cheapest(b, name, 4) {
				by[p.Command] = append(by[p.Command], p)
			}
			for _, c := range cost.Commands {
				fmt.Fprintf(&text, "\n%s %s:", name, c)
				for _, from := range by[c] {
					m, ok := cost.ModelOf(productOf(name), cost.Measured{
						Command: c,
						PerCall: time.Duration(from.PerCall * float64(time.Microsecond)),
					}, from.Size)
					if !ok {
						b.Fatalf("no model of %s for %s", c, name)
					}
					fmt.Fprintf(&text, " %d nodes %.1f µs;", from.Size.Nodes, from.PerCall)
					for _, to := range by[c] {
						if from.Size == to.Size {
							continue
						}
						e := float64(m.At(to.Size).Nanoseconds())/1e3/to.PerCall - 1
						fmt.Fprintf(&text, " %+.0f %% at %d;", e*100, to.Size.Nodes)
						errors = append(errors, math.Abs(e))
					}
				}
			}
		}
		slices.Sort(errors)
		b.Logf("%s\n%d predictions: median error %.0f %%, p90 %.0f %%, worst %.0f %%", text.String(),
			len(errors), stats.MedianUpper(errors)*100, stats.Quantile(errors, 0.9)*100, errors[len(errors)-1]*100)
		b.ReportMetric(stats.MedianUpper(errors)*100, "%median-error")
		b.ReportMetric(stats.Quantile(errors, 0.9)*100, "%p90-error")
		b.ReportMetric(errors[len(errors)-1]*100, "%worst-error")
	}
}

// cheapest measures the maps in turn, several rounds, and keeps the lowest of each: a machine that is shared is slower
// for seconds at a time, and that must not look like an error of the model.
func cheapest(b *testing.B, name servers.Name, rounds int) []cost.Point {
	var best []cost.Point
	for range rounds {
		i := 0
		for _, m := range checkedMaps {
			for _, p := range measureMap(b, name, m) {
				if i == len(best) {
					best = append(best, p)
				}
				best[i].PerCall = min(best[i].PerCall, p.PerCall)
				i++
			}
		}
	}
	return best
}

// productOf is what a server of the lab says of itself: "redis 6.0.16".
func productOf(name servers.Name) string { return strings.Replace(string(name), "-", " ", 1) }
