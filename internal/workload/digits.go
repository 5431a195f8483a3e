package workload

import "slowpath/internal/cluster"

// pairs are the decimal digits of a number of a key, two and two, the highest first: the units in which numbers are written and
// slots are looked up.
type pairs [keyDigits / 2]uint8

func pairsOf(n uint64) pairs {
	high, low := uint32(n/1_000_000), uint32(n%1_000_000)
	return pairs{
		uint8(high / 10_000), uint8(high / 100 % 100), uint8(high % 100),
		uint8(low / 10_000), uint8(low / 100 % 100), uint8(low % 100),
	}
}

const pairText = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" + "40414243444546474849" +
	"50515253545556575859" + "60616263646566676869" + "70717273747576777879" + "80818283848586878889" + "90919293949596979899"

// put writes pairs from … until to dst.
func (p *pairs) put(dst []byte, from, until int) {
	for i := from; i < until; i++ {
		at := 2 * int(p[i])
		dst[0], dst[1] = pairText[at], pairText[at+1]
		dst = dst[2:]
	}
}

func (p *pairs) putAll(dst []byte) {
	_ = dst[keyDigits-1]
	for i, pair := range p {
		at := 2 * int(pair)
		dst[2*i], dst[2*i+1] = pairText[at], pairText[at+1]
	}
}

// slotTable gives the slot of a key of which only the number changes. CRC16 is linear: each pair of digits at its place changes the
// same bits whatever the others are, so that a slot is six look-ups instead of a CRC over the key.
type slotTable struct {
	zero    uint16 // slot of the key with the number 0
	changes [keyDigits / 2][100]uint16
}

// newSlotTable asks for the slots of keys that key makes of numbers.
func newSlotTable(key func(n uint64) []byte) *slotTable {
	t := &slotTable{zero: cluster.Slot(key(0))}
	unit := uint64(1)
	for i := len(t.changes) - 1; i >= 0; i-- {
		for v := range uint64(100) {
			t.changes[i][v] = cluster.Slot(key(v*unit)) ^ t.zero
		}
		unit *= 100
	}
	return t
}

func (t *slotTable) slot(p *pairs) int16 {
	s := t.zero
	for i := range t.changes {
		s ^= t.changes[i][p[i]]
	}
	return int16(s)
}

// appendDecimal appends a number without leading zeros.
func appendDecimal(dst []byte, n uint64) []byte {
	var buf [20]byte
	at := len(buf)
	for n >= 100 {
		at -= 2
		pair := 2 * (n % 100)
		buf[at], buf[at+1] = pairText[pair], pairText[pair+1]
		n /= 100
	}
	if n >= 10 {
		at -= 2
		buf[at], buf[at+1] = pairText[2*n], pairText[2*n+1]
	} else {
		at--
		buf[at] = byte('0' + n)
	}
	return append(dst, buf[at:]...)
}

// decimalLen is how many digits appendDecimal writes.
func decimalLen(n uint64) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return digits
}
