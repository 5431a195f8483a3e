package workload

import (
	"math"
	"math/bits"
)

// zipf draws ranks 0 … n-1 with probabilities in proportion to 1/(rank+1)^exponent, for any exponent above 0, by
// rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6 (1996). It is exact, needs no table, and takes fewer than two rounds on average whatever
// n is.
type zipf struct {
	n                   float64
	exponent            float64
	oneMinus            float64 // 1 - exponent
	first, last, accept float64
}

func newZipf(n uint64, exponent float64) zipf {
	z := zipf{n: float64(n), exponent: exponent, oneMinus: 1 - exponent}
	z.first = z.integral(1.5) - 1 // the hat of the first rank is its own probability
	z.last = z.integral(z.n + 0.5)
	z.accept = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

func (z *zipf) draw(r *rng) uint64 {
	for {
		u := z.last + r.float()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.accept || u >= z.integral(k+0.5)-z.density(k) {
			return uint64(k) - 1
		}
	}
}

func (z *zipf) density(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral of the density from 1 to x: (x^(1-e) - 1) / (1-e), and log x for e = 1, in one form that is exact near 1.
func (z *zipf) integral(x float64) float64 {
	log := math.Log(x)
	return log * expm1Over(z.oneMinus*log)
}

func (z *zipf) inverse(y float64) float64 {
	t := max(y*z.oneMinus, -1) // rounding may make it smaller
	return math.Exp(y * log1pOver(t))
}

// expm1Over is (e^x - 1)/x, log1pOver is log(1+x)/x; near 0 by their series.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x/3)
}

// coprime gives a number below n, near n divided by the golden ratio, that has no divisor in common with n: its
// multiples modulo n are all numbers below n, each once, and neighbours are far apart.
func coprime(n uint64) uint64 {
	const golden = 0.6180339887498949
	for m := uint64(float64(n)*golden) | 1; m < n; m += 2 {
		if gcd(m, n) == 1 {
			return m
		}
	}
	return 1
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mulMod is a × b mod n, for a and b below n.
func mulMod(a, b, n uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi == 0 {
		return lo % n
	}
	return bits.Rem64(hi, lo, n)
}
