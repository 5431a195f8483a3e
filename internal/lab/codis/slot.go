// Package codis is a stand-in for Codis, which cannot be had from a registry: one proxy over servers that know nothing
// of each other, which spreads keys over 1024 slots and migrates slots one key at a time, as codis-proxy does with
// migration_method = "sync". It has no dashboard, no coordinator, no replicas and no authentication, and its servers
// are not patched: it sends them MIGRATE where Codis sends SLOTSMGRTTAGONE, and finds the keys of a slot with SCAN.
package codis

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Slots is the number of slots of Codis.
const Slots = 1024

// Slot is the slot of a key: the CRC-32 (IEEE) of its hash tag, or of the whole key where it has none, modulo Slots.
// Other than in Redis Cluster, an empty tag counts.
func Slot(key []byte) int {
	if from := bytes.IndexByte(key, '{'); from >= 0 {
		if n := bytes.IndexByte(key[from+1:], '}'); n >= 0 {
			key = key[from+1 : from+1+n]
		}
	}
	return int(crc32.ChecksumIEEE(key) % Slots)
}

// Range is the slots from First to Last, both included.
type Range struct{ First, Last int }

// ParseRange reads a range such as 0-511, or one slot.
func ParseRange(text string) (Range, error) {
	first, last, many := strings.Cut(text, "-")
	if !many {
		last = first
	}
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || from < 0 || to < from || to >= Slots {
		return Range{}, fmt.Errorf("%q is no range of slots: give one such as 0-511, up to %d", text, Slots-1)
	}
	return Range{from, to}, nil
}

func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}
