package survey

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

var referenceFile = flag.String("reference", "", "a file for the measurements of BenchmarkReference, such as "+
	"reference.tsv of package cost")

var onlyServer = flag.String("server", "", "measure this version only, such as redis-6.0.16; with another -reference "+
	"than the whole one")

// versions are those to measure.
func versions() []servers.Name {
	if *onlyServer != "" {
		return []servers.Name{servers.Name(*onlyServer)}
	}
	return servers.Known()
}

// referenceMaps are the sizes at which the model is fitted. Those at which it is checked, 6, 80 and 300 nodes
// (BenchmarkModel), are not among them.
var referenceMaps = []fleet.MapSpec{
	{Masters: 3},
	{Masters: 3, Replicas: 1, RangesPerMaster: 6},
	{Masters: 12},
	{Masters: 12, RangesPerMaster: 20},
	{Masters: 20, Replicas: 1},
	{Masters: 40, RangesPerMaster: 6},
	{Masters: 40, RangesPerMaster: 409},
	{
		Masters: 80, Replicas: 1,
		RangesPerMaster: 3,
	},
	{Masters: 160, RangesPerMaster: 12},
	{Masters: 160, RangesPerMaster: 102},
	{
		Masters: 240, Replicas: 1,
		RangesPerMaster: 6,
	},
	{Masters: 480},
}

// BenchmarkReference measures what the commands cost on every version, for reference.tsv. Lower values of an earlier
// run in the file are kept: other load on the machine only makes calls slower. To start over, remove the file.
//
//	go test -run '^$' -bench Reference -benchtime 1x ./internal/topology/survey \
//		-reference internal/topology/cost/reference.tsv
func BenchmarkReference(b *testing.B) {
	needs.Real(b, needs.RedisServer)
	earlier := earlierPoints(b)
	for b.Loop() {
		text := cost.ReferenceHead
		for _, name := range versions() {
			for _, m := range referenceMaps {
				for _, p := range measureMap(b, name, m) {
					if before, ok := earlier[key(p)]; ok {
						p.PerCall = min(p.PerCall, before)
					}
					text += row(p)
				}
			}
		}
		b.Log("\n" + text)
		if *referenceFile != "" {
			if err := os.WriteFile(*referenceFile, []byte(text), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// measureMap measures each command on a server with that map. The server has a high priority, since commandstats counts
// wall-clock time.
func measureMap(b *testing.B, name servers.Name, m fleet.MapSpec) (points []cost.Point) {
	b.Helper()
	i := fleettest.StartMap(b, name, m, fleet.Spec{Nice: -10})
	t, err := target.Parse(i.Addr)
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := session.Open(b.Context(), t, "slowpath-topology")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	commands := cost.Commands
	if name == servers.Redis506 || name == servers.Redis6016 || name == servers.Redis6214 {
		commands = []cost.Command{cost.Nodes, cost.Slots}
	}
	for _, c := range commands {
		points = append(points, cost.Point{Server: string(name), Command: c, Size: sizeOf(m), PerCall: lowestOf(b, s,
			c)})
	}
	if err := i.Stop(b.Context()); err != nil { // now, and not when the benchmark ends
		b.Fatal(err)
	}
	return points
}

func lowestOf(b *testing.B, s *session.Session, c cost.Command) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	first, err := measure(ctx, s, c, 1)
	if err != nil {
		b.Fatal(err)
	}
	m, err := measureLowest(ctx, s, c, min(60, 12+(8<<20)/first.Bytes)) // megabytes take longer to read than to write
	if err != nil || !m.Alone {
		b.Fatal(err, m)
	}
	return float64(m.PerCall.Nanoseconds()) / 1e3
}

func earlierPoints(b *testing.B) map[cost.Point]float64 {
	out := map[cost.Point]float64{}
	body, err := os.ReadFile(*referenceFile)
	if err != nil {
		return out
	}
	points, err := cost.ParseReference(string(body))
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range points {
		out[key(p)] = p.PerCall
	}
	return out
}

// key is a point without its time.
func key(p cost.Point) cost.Point {
	p.PerCall = 0
	return p
}

func sizeOf(m fleet.MapSpec) cost.Size {
	ranges := min(m.Masters*max(1, m.RangesPerMaster), fleet.Slots)
	return cost.Size{Nodes: m.Masters * (1 + m.Replicas), Masters: m.Masters, Ranges: ranges, Entries: ranges *
		(1 + m.Replicas)}
}

func row(p cost.Point) string {
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%.2f\n", p.Server, string(p.Command), p.Size.Nodes, p.Size.Masters,
		p.Size.Ranges, p.Size.Entries, p.PerCall)
}
