package layout

import "math"

// Fraction brings a fraction into 0..1; what is no number is 0.
func Fraction(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return min(1, max(0, f))
}
