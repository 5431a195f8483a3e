package bench

import "fmt"

// spelled prints nanoseconds for people: 50 µs, 1.24 ms.
func spelled(ns int64) string {
	switch {
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3g s", float64(ns)/1e9)
}
