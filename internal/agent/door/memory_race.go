//go:build race

package door

import "math"

// maxMemory is not bounded: the race detector maps far more than it uses.
const maxMemory = math.MaxInt64
