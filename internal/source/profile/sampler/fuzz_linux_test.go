package sampler

import (
	"encoding/binary"
	"testing"
	"unsafe"
)

// FuzzRecord: whatever length a record says its stack has, nothing beyond the record is read.
func FuzzRecord(f *testing.F) {
	record := make([]byte, headerBytes+64)
	binary.LittleEndian.PutUint32(record[unsafe.Offsetof(clockSample{}.StackBytes):], 64)
	f.Add(record, uint64(0x7000), uint64(0x7008))
	binary.LittleEndian.PutUint32(record[unsafe.Offsetof(clockSample{}.StackBytes):], 1<<31)
	f.Add(record, uint64(0), ^uint64(0))
	f.Add(record[:headerBytes-1], uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, record []byte, sp, addr uint64) {
		var head clockSample
		r, err := parse(record, &head)
		if err != nil {
			return
		}
		if len(r.stack) > len(record)-headerBytes {
			t.Errorf("a stack of %d bytes in a record of %d", len(r.stack), len(record))
		}
		if _, ok := r.word(addr, sp); ok && (addr < sp || addr-sp > uint64(len(r.stack))) {
			t.Errorf("a word at %#x of a stack at %#x of %d bytes", addr, sp, len(r.stack))
		}
	})
}
