package workload

import "math/bits"

// rng is wyrand (Wang Yi, wyhash): 64 bits of state, a multiplication per number. It is not for secrets.
type rng struct{ state uint64 }

func newRNG(seed uint64) rng { return rng{seed} }

func (r *rng) next() uint64 {
	r.state += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(r.state, r.state^0xe7037ed1a0b428db)
	return hi ^ lo
}

// below gives a number in [0, n), n > 0, by Lemire's multiplication; its bias is n/2^64.
func (r *rng) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// float gives a number in [0, 1).
func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }
