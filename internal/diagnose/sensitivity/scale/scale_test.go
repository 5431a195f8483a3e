package scale

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	t.Cleanup(func() { Set(0, -1, 1) })
	Set(2, 1, 1.3)
	if got := Of(0, 10); got != 10 {
		t.Errorf("another bound: %v", got)
	}
	if got := Of(1, 10); got != 13 {
		t.Errorf("int: %v", got)
	}
	if got := Of(1, 1); got != 2 {
		t.Errorf("small int: %v", got)
	}
	if got := Of(1, time.Second); got != 1300*time.Millisecond {
		t.Errorf("duration: %v", got)
	}
	if r := Read(); !r[0] || !r[1] {
		t.Errorf("read: %v", r)
	}
	Set(2, 0, 0.7)
	if got := Of(0, 1.0); got != 0.7 {
		t.Errorf("float: %v", got)
	}
	if got := Of(0, 1); got != 0 {
		t.Errorf("small int: %v", got)
	}
	if r := Read(); r[1] {
		t.Errorf("read: %v", r)
	}
}

// TestOnce: what does not read the scaled bound is made once, and counts as read again.
func TestOnce(t *testing.T) {
	t.Cleanup(func() { Set(0, -1, 1) })
	made := 0
	sum := func() int {
		made++
		return Of(0, 10) + Of(1, 10)
	}
	Set(3, -1, 1)
	if got := Once(0, "a", sum); got != 20 || made != 1 {
		t.Errorf("%d, made %d times", got, made)
	}
	Set(3, 2, 1.3)
	if got := Once(0, "a", sum); got != 20 || made != 1 || !Read()[0] || Read()[2] {
		t.Errorf("%d, made %d times, read %v", got, made, Read())
	}
	Set(3, 1, 1.3)
	if got := Once(0, "a", sum); got != 23 || made != 2 {
		t.Errorf("scaled: %d, made %d times", got, made)
	}
	Set(3, 0, 1.3)
	Once(1, "a", sum)
	if made != 3 {
		t.Errorf("a bound that it may read later: made %d times", made)
	}
}
