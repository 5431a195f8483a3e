//go:build linux

package bench

import (
	"fmt"
	"maps"
	"slices"

	"slowpath/internal/load/engine"
)

// fixes say what can be done about errors, by their kind.
func fixes(r *Result) (out []string) {
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		if fix := engine.Fix(kind); fix != "" {
			out = append(out, fmt.Sprintf("%s: %s.", kind, fix))
		}
	}
	return out
}
