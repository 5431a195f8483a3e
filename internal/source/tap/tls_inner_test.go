//go:build linux

package tap

import (
	"slices"
	"testing"
)

func TestFirstPush(t *testing.T) {
	for code, want := range map[string]struct {
		at   uint64
		push bool
	}{
		"\x55\x48":                 {0, true},  // push rbp
		"\x41\x55":                 {0, true},  // push r13
		"\xf3\x0f\x1e\xfa\x41\x56": {4, true},  // endbr64; push r14
		"\xf3\x0f\x1e\xfa\x48\x83": {4, false}, // endbr64; sub
		"\x48\x83\xec\x18":         {0, false}, // sub
		"\x41":                     {0, false},
		"":                         {0, false},
	} {
		if at, push := firstPush([]byte(code)); at != want.at || push != want.push {
			t.Errorf("% x: %d, %v", code, at, push)
		}
	}
}

func TestFunctionStarts(t *testing.T) {
	header := []byte{
		1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x20, 0, 0, 0, 0,
		0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9,
	}
	if got := functionStarts(header, 0x1000); len(got) != 2 || !got[0xff0] || !got[0x1020] {
		t.Errorf("%v", got)
	}
	if got := callTargets([]byte{0x90, 0xe8, 0xfa, 0xff, 0xff, 0xff, 0xe8}, 0x100); !slices.Equal(got,
		[]uint64{0x100}) {
		t.Errorf("%x", got)
	}
}

func FuzzFunctionStarts(f *testing.F) {
	f.Add([]byte{1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, at uint64) {
		if n := len(functionStarts(data, at)); n > len(data)/8 {
			t.Errorf("%d functions in %d bytes", n, len(data))
		}
		callTargets(data, at)
	})
}
