package cluster

import (
	"bytes"
	"strconv"
	"sync"
)

// SlotCount is the number of hash slots of any cluster (CLUSTER_SLOTS in Redis' cluster.h).
const SlotCount = 16384

// Slot returns the hash slot of a key, as keyHashSlot in Redis' cluster.c: CRC16 of the hash tag, modulo [SlotCount].
func Slot(key []byte) uint16 { return crc16(hashTag(key)) % SlotCount }

// hashTag returns the part of the key that is hashed: what is between the first `{` and the first `}` after it, unless
// that is empty; else the whole key. The result shares the memory of key.
func hashTag(key []byte) []byte {
	open := bytes.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := bytes.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// crcTable is of CRC16-XMODEM: polynomial 0x1021, start 0, nothing reflected (Redis' crc16.c).
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

func crc16(b []byte) uint16 {
	crc := uint16(0)
	for _, c := range b {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^c]
	}
	return crc
}

// TagForSlot returns a short hash tag of the slot: the key "{" + tag + "}…" is in it. It is empty for a number that is
// no slot.
func TagForSlot(slot uint16) string {
	if slot >= SlotCount {
		return ""
	}
	return tags()[slot]
}

// tags finds the smallest number in base 36 for each slot: about 150 000 tries in a few milliseconds, once.
var tags = sync.OnceValue(func() *[SlotCount]string {
	var found [SlotCount]string
	text := make([]byte, 0, 8)
	for n, missing := uint64(0), SlotCount; missing > 0; n++ {
		text = strconv.AppendUint(text[:0], n, 36)
		if slot := Slot(text); found[slot] == "" {
			found[slot] = string(text)
			missing--
		}
	}
	return &found
})
