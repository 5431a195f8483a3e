package sampler

import (
	"encoding/binary"
	"slices"
	"testing"

	"slowpath/internal/source/profile/symbol"
)

// program is code from 0x1000 to 0x2000. Functions below 0x1800 have rules, the others frame pointers.
type program map[uint64]symbol.Rule

func (program) Mapped(at uint64) bool { return at >= 0x1000 && at < 0x2000 }

func (p program) Rule(at uint64, innermost bool) *symbol.Rule {
	for start, r := range p {
		if at >= start && at < start+0x100 && (innermost || !r.Bare) {
			return &r
		}
	}
	return nil
}

const stackAt = 0x7000

// stacked is a sample with words at the stack's pointer.
func stacked(place, frame uint64, words ...uint64) raw {
	r := raw{clockSample: &clockSample{}}
	r.Regs[7], r.Regs[6], r.Regs[16] = stackAt, frame, place
	for _, w := range words {
		r.stack = binary.LittleEndian.AppendUint64(r.stack, w)
	}
	return r
}

func TestWalk(t *testing.T) {
	u, err := newUnwinder("amd64")
	if err != nil {
		t.Fatal(err)
	}
	byStack := func(bytes int64, saved ...symbol.Saved) symbol.Rule {
		return symbol.Rule{Register: 7, Offset: bytes, Return: -8, InMemory: true, Saved: saved}
	}
	p := program{
		0x1000: byStack(16), 0x1100: byStack(24, symbol.Saved{Register: 6, Offset: -16}), 0x1200: {Last: true},
		0x1400: {Register: 40}, 0x1500: byStack(-64),
		0x1900: {Register: 7, Offset: 8, Return: -8, InMemory: true, Bare: true},
	}
	deep := stacked(0x1810, stackAt+0x9000)
	deep.User, deep.UserBytes = [127]uint64{0x1810, 0x1820, 0x1830}, 24
	for name, tt := range map[string]struct {
		sample raw
		want   []uint64
		cut    bool
	}{
		"by rules to the begin": {
			stacked(0x1010, 0, 0, 0x1110, 0, 0xbeef, 0x1210),
			[]uint64{0x1010, 0x1110, 0x1210},
			false,
		},
		"a register that a callee had saved": {
			stacked(0x1110, 0, 0, stackAt+24, 0x1810, 0, 0x1210),
			[]uint64{0x1110, 0x1810, 0x1210},
			false,
		},
		"by frame pointers": {
			stacked(0x1810, stackAt, stackAt+16, 0x1820, 0, 0),
			[]uint64{0x1810, 0x1820},
			false,
		},
		"innermost without a frame": {stacked(0x1910, stackAt+8, 0x1820, 0, 0x1210), []uint64{
			0x1910, 0x1820,
			0x1210,
		}, false},
		"a return address that is none": {stacked(0x1010, 0, 0, 0x99999), []uint64{0x1010}, true},
		"more than was copied":          {stacked(0x1010, 0, 0), []uint64{0x1010}, true},
		"a register that there is not":  {stacked(0x1410, 0, 0), []uint64{0x1410}, true},
		"a stack that grows upwards":    {stacked(0x1510, 0, 0), []uint64{0x1510}, true},
		"frames in a circle":            {stacked(0x1810, stackAt, stackAt, 0x1820), []uint64{0x1810, 0x1820}, true},
		"deeper than the copy":          {deep, []uint64{0x1810, 0x1820, 0x1830}, false},
		"nowhere":                       {stacked(0x10, 0), nil, true},
	} {
		got, cut := u.walk(p, tt.sample)
		if !slices.Equal(got, tt.want) || cut != tt.cut {
			t.Errorf("%s: %#x, cut %v, want %#x", name, got, cut, tt.want)
		}
	}
}

// FuzzWalk: registers and stacks are anything.
func FuzzWalk(f *testing.F) {
	f.Add(uint64(0x1010), uint64(stackAt), []byte{16, 0x11})
	f.Fuzz(func(t *testing.T, place, frame uint64, stack []byte) {
		u, _ := newUnwinder("amd64")
		r := stacked(place, frame)
		r.stack = stack
		p := program{0x1000: {Register: 7, Offset: 8, Return: -8, InMemory: true}, 0x1100: {
			Register: 6, Offset: 16,
			Return: -8, InMemory: true, Saved: []symbol.Saved{{Register: 7, Offset: -16}},
		}}
		if got, _ := u.walk(p, r); len(got) > maxCallers {
			t.Errorf("%d places", len(got))
		}
	})
}
