package cluster

import (
	"testing"

	"pgregory.net/rapid"
)

// The numbers are CLUSTER KEYSLOT of a Redis 7.0.15, and the check value of CRC16-XMODEM from the cluster
// specification.
func TestSlot(t *testing.T) {
	if got := crc16([]byte("123456789")); got != 0x31c3 {
		t.Errorf("CRC16 of 123456789 is %#x, want 0x31c3", got)
	}
	for key, want := range map[string]uint16{
		"": 0, "foo": 12182, "bar": 5061, "{foo}bar": 12182, "x{foo}{bar}": 12182, "123456789": 12739, "somekey": 11058,
	} {
		if got := Slot([]byte(key)); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// The examples of the cluster specification.
func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"{user1000}.following": "user1000", "foo{}{bar}": "foo{}{bar}", "foo{{bar}}zap": "{bar", "foo{bar}{zap}": "bar",
		"foo": "foo", "": "", "{": "{", "}{": "}{", "}{a}": "a", "{}": "{}", "a{b": "a{b",
	} {
		if got := string(hashTag([]byte(key))); got != want {
			t.Errorf("hashTag(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestTagForSlot(t *testing.T) {
	for slot := range uint16(SlotCount) {
		tag := TagForSlot(slot)
		if got := Slot([]byte("a{" + tag + "}b")); got != slot || len(tag) > 5 {
			t.Fatalf("tag %q of slot %d is of slot %d", tag, slot, got)
		}
	}
	if got := TagForSlot(SlotCount); got != "" {
		t.Errorf("a tag %q for a slot that does not exist", got)
	}
}

func TestKeysWithATagShareASlotProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := rapid.StringMatching(`[^{}]+`).Draw(t, "tag")
		before := rapid.StringMatching(`[^{]*`).Draw(t, "before")
		after := rapid.String().Draw(t, "after")
		if got, want := Slot([]byte(before+"{"+tag+"}"+after)), Slot([]byte(tag)); got != want {
			t.Fatalf("slot %d, want %d", got, want)
		}
	})
}

func TestSlotDoesNotAllocate(t *testing.T) {
	key := []byte("key:{tag}:000000012345")
	if n := testing.AllocsPerRun(100, func() { Slot(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSlot(b *testing.B) {
	key := []byte("key:000000012345")
	for b.Loop() {
		Slot(key)
	}
}
