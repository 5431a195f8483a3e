package cost

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// referenceText has measurements on one machine: what the commands cost on maps of 3 to 480 nodes, by version.
// BenchmarkReference of package survey makes them.
//
//go:embed reference.tsv
var referenceText string

// ReferenceHead is the first line of such a file.
const ReferenceHead = "server\tcommand\tnodes\tmasters\tranges\tentries\tusec\n"

// Point is one measurement of the reference: microseconds of the main thread for one call.
type Point struct {
	Server  string
	Command Command
	Size    Size
	PerCall float64
}

// measuredVersions are those in the reference, oldest first, as the lab names them.
var measuredVersions = []string{
	"redis-5.0.6", "redis-6.0.16", "redis-6.2.14", "redis-7.0.15", "redis-8.0.2",
	"valkey-8.1.1",
}

// laws are fitted to the reference once.
var laws = sync.OnceValue(func() map[lawKey]law {
	points, err := ParseReference(referenceText)
	if err != nil {
		panic(err) // the file is embedded, and tested
	}
	by := map[lawKey][]Point{}
	for _, p := range points {
		key := lawKey{p.Server, p.Command}
		by[key] = append(by[key], p)
	}
	out := map[lawKey]law{}
	for key, points := range by {
		out[key] = fit(key.command, points)
	}
	return out
})

type lawKey struct {
	server  string
	command Command
}

// ParseReference reads the measurements of a file.
func ParseReference(text string) ([]Point, error) {
	rest, ok := strings.CutPrefix(text, ReferenceHead)
	if !ok {
		return nil, fmt.Errorf("reference.tsv: the first line is not %q", ReferenceHead)
	}
	var points []Point
	for line := range strings.Lines(rest) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 7 {
			return nil, fmt.Errorf("reference.tsv: %d columns in %q", len(f), line)
		}
		p := Point{Server: f[0], Command: Command(f[1])}
		var err error
		for i, to := range []*int{&p.Size.Nodes, &p.Size.Masters, &p.Size.Ranges, &p.Size.Entries} {
			if *to, err = strconv.Atoi(f[2+i]); err != nil {
				return nil, fmt.Errorf("reference.tsv: %q: %w", line, err)
			}
		}
		if p.PerCall, err = strconv.ParseFloat(f[6], 64); err != nil || p.PerCall <= 0 {
			return nil, fmt.Errorf("reference.tsv: %q: no time", line)
		}
		points = append(points, p)
	}
	return points, nil
}

// Known reports whether the version of a product ("redis 6.0.16") has a law.
func Known(product string) bool {
	_, ok := measuredVersionFor(product)
	return ok
}

// measuredVersionFor is the measured version that implements the commands like this one. The implementation changed
// with 6.2 (redis#8182, redis#8541: one pass over the slots), 7.0 (SHARDS; SLOTS with a map of names per node) and
// Valkey 8.0 (SLOTS cached, valkey#53).
func measuredVersionFor(product string) (string, bool) {
	name, version, _ := strings.Cut(product, " ")
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, _ := strconv.Atoi(second)
	switch {
	case err != nil || name != "redis" && name != "valkey":
		return "", false
	case name == "valkey" && major >= 8:
		return "valkey-8.1.1", true
	case name == "redis" && major >= 8:
		return "redis-8.0.2", true
	case major == 7:
		return "redis-7.0.15", true
	case major == 6 && minor >= 2:
		return "redis-6.2.14", true
	case major == 6:
		return "redis-6.0.16", true
	}
	return "redis-5.0.6", true
}
