//go:build linux

package tap

import (
	"encoding/binary"
	"testing"
)

// note is one of .note.stapsdt.
func note(name string, at, base, semaphore uint64) []byte {
	body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at),
		base), semaphore)
	body = append(body, "python\x00"+name+"\x00-4@%eax\x00"...)
	out := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 8),
		uint32(len(body))), stapNoteType)
	out = append(append(out, "stapsdt\x00"...), body...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

func TestEachProbe(t *testing.T) {
	data := append(note("gc__start", 100, 7, 0), note("gc__done", 200, 7, 300)...)
	got := map[string][3]uint64{}
	eachProbe(data, binary.LittleEndian, func(name string, at, base, semaphore uint64) {
		got[name] = [3]uint64{
			at, base,
			semaphore,
		}
	})
	if len(got) != 2 || got["python:gc__start"] != [3]uint64{100, 7, 0} || got["python:gc__done"] != [3]uint64{
		200, 7,
		300,
	} {
		t.Errorf("%v", got)
	}
}

func FuzzEachProbe(f *testing.F) {
	f.Add(note("gc__start", 1, 2, 3))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 3, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		eachProbe(data, binary.LittleEndian, func(string, uint64, uint64, uint64) {})
	})
}
