package privilege

import (
	"testing"
)

// TestOne: who slowpath becomes.
func TestOne(t *testing.T) {
	root, redis, java := User{0, 0}, User{100, 101}, User{200, 201}
	for _, c := range []struct {
		needed  []User
		want    User
		several bool
	}{
		{nil, Nobody, false},
		{[]User{redis}, redis, false},
		{[]User{redis, {100, 5}}, redis, false},
		{[]User{root}, root, false},
		{[]User{redis, java}, redis, true},
		{[]User{root, java}, root, true},
	} {
		if got, several := one(c.needed); got != c.want || several != c.several {
			t.Errorf("%v: %v, %v", c.needed, got, several)
		}
	}
}
