package house

import (
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/load/experiment"
)

// TestExperimentDocuments: docs/json.md has every field of the documents of experiments. What they share is described
// once: loads, latencies, estimates.
func TestExperimentDocuments(t *testing.T) {
	text := read(t, "docs/json.md")
	shared := sectionOf(text, experiment.SweepSchema)
	for schema, value := range map[string]any{
		experiment.SweepSchema:    experiment.Sweep{},
		experiment.CapacitySchema: experiment.Capacity{}, experiment.RepeatsSchema: experiment.Repeats{},
		experiment.TargetsSchema: experiment.Targets{},
	} {
		section := sectionOf(text, schema)
		for _, field := range fieldsOf(reflect.TypeOf(value), "") {
			if !described(section, field) && !described(shared, field) {
				t.Errorf("docs/json.md, %s: no row for `%s`", schema, field)
			}
		}
	}
}

// described tells whether a field has a row: its own; as a field of a load; or as part of a latency or of an estimate,
// which have rows as a whole.
func described(section, field string) bool {
	field = strings.ReplaceAll(field, "..", ".") // of an embedded struct
	row := func(name string) bool { return strings.Contains(section, "| `"+name+"` |") }
	if row(field) {
		return true
	}
	for _, load := range []string{"points[].runs[].", "trials[].run.", "targets[].runs[].", "runs[]."} {
		if rest, ok := strings.CutPrefix(field, load); ok {
			field = strings.Replace(rest, "service.", "latency.", 1)
			break
		}
	}
	if rest, ok := strings.CutPrefix(field, "points[].latency."); ok {
		field = "latency." + rest
	}
	for _, part := range []string{".value", ".low", ".high"} {
		if whole, ok := strings.CutSuffix(field, part); ok && row(whole) {
			return true
		}
	}
	return row(field)
}
