package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	for _, test := range []struct {
		payload string
		want    string // the map after it, "" for an error
	}{
		{"100 b:2", "0-99 a:1, 100-100 b:2, 101-16383 a:1"},
		{"0-16383 b:2", "0-16383 b:2"},
		{"0-1,16383 [::1]:2", "0-1 [::1]:2, 2-16382 a:1, 16383-16383 [::1]:2"},
		{"16384 b:2", ""},
		{"5-4 b:2", ""},
		{"x b:2", ""},
		{"100", ""},
		{"", ""},
	} {
		m := newSlotMap("a:1")
		for i := range m.owners {
			m.owners[i] = "a:1"
		}
		err := m.apply(test.payload)
		if (err != nil) != (test.want == "") {
			t.Errorf("%q: %v", test.payload, err)
		}
		if got := describe(m); err == nil && got != test.want {
			t.Errorf("%q: %s, want %s", test.payload, got, test.want)
		}
	}
}

func describe(m *slotMap) string {
	ranges, _ := m.slots(context.Background()) // never fails
	var list []string
	for _, r := range ranges {
		list = append(list, fmt.Sprintf("%d-%d %s", r.Start, r.End, r.Nodes[0].Addr))
	}
	return strings.Join(list, ", ")
}
