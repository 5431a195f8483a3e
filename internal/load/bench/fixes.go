//go:build linux

package bench

import (
	"fmt"
	"maps"
	"slices"

	"slowpath/internal/load/engine"
)

// fixes say what can be done about calls and connections that failed, by kind.
func fixes(r *Result) (out []string) {
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		if fix := engine.Fix(kind); fix != "" {
			out = append(out, fmt.Sprintf("%s: %s.", kind, fix))
		}
	}
	return out
}
