package workload

import (
	"encoding/binary"

	"slowpath/internal/wire/cluster"
)

// pairs are the decimal digits of a key's number in pairs, the highest first: numbers are written and slots are looked
// up by pairs.
type pairs [keyDigits / 2]uint8

func pairsOf(n uint64) pairs {
	high, low := uint32(n/1_000_000), uint32(n%1_000_000)
	return pairs{
		uint8(high / 10_000), uint8(high / 100 % 100), uint8(high % 100),
		uint8(low / 10_000), uint8(low / 100 % 100), uint8(low % 100),
	}
}

// pairMask keeps an index into a table of pairs within its bounds, so that the compiler omits the check.
const pairMask = 127

// pairText has the two digits of each pair, in the order of memory of a little-endian uint16.
var pairText = func() (t [pairMask + 1]uint16) {
	for i := range 100 {
		t[i] = uint16('0'+i/10) | uint16('0'+i%10)<<8
	}
	return t
}()

// put writes the pairs [from, until) to dst.
func (p *pairs) put(dst []byte, from, until int) {
	for i := from; i < until; i++ {
		binary.LittleEndian.PutUint16(dst[2*(i-from):], pairText[p[i]&pairMask])
	}
}

func (p *pairs) putAll(dst []byte) {
	_ = dst[keyDigits-1]
	for i, pair := range p {
		binary.LittleEndian.PutUint16(dst[2*i:], pairText[pair&pairMask])
	}
}

// putDigits writes what putAll of pairsOf(n) would, without the pairs in between.
func putDigits(dst []byte, n uint64) {
	_ = dst[keyDigits-1]
	high, low := uint32(n/1_000_000), uint32(n%1_000_000)
	binary.LittleEndian.PutUint16(dst[0:], pairText[high/10_000&pairMask])
	binary.LittleEndian.PutUint16(dst[2:], pairText[high/100%100&pairMask])
	binary.LittleEndian.PutUint16(dst[4:], pairText[high%100&pairMask])
	binary.LittleEndian.PutUint16(dst[6:], pairText[low/10_000&pairMask])
	binary.LittleEndian.PutUint16(dst[8:], pairText[low/100%100&pairMask])
	binary.LittleEndian.PutUint16(dst[10:], pairText[low%100&pairMask])
}

// slotTable gives the slot of a key of which only the number changes. CRC16 is linear: a pair of digits changes the
// same bits whatever the other pairs are, so that a slot takes six table lookups instead of a CRC over the key.
type slotTable struct {
	zero    uint16 // slot of the key with the number 0
	changes [keyDigits / 2][pairMask + 1]uint16
}

// newSlotTable computes the table; key gives the key of a number.
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
		s ^= t.changes[i][p[i]&pairMask]
	}
	return int16(s)
}

// appendDecimal appends a number without leading zeros.
func appendDecimal(dst []byte, n uint64) []byte {
	var buf [20]byte
	at := len(buf)
	for n >= 100 {
		at -= 2
		binary.LittleEndian.PutUint16(buf[at:], pairText[n%100])
		n /= 100
	}
	if n >= 10 {
		at -= 2
		binary.LittleEndian.PutUint16(buf[at:], pairText[n])
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
