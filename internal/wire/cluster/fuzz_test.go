package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"slowpath/internal/wire/resp"
)

// checkMap checks the invariants of a parsed map.
func checkMap(t *testing.T, m Map) {
	t.Helper()
	if len(m.Nodes) > maxNodes {
		t.Fatalf("%d nodes", len(m.Nodes))
	}
	covered := 0
	for slot, owner := range m.Owners() {
		if owner >= 0 {
			covered++
		}
		if slot%2341 != 0 { // Owner is slow
			continue
		}
		if n, ok := m.Owner(uint16(slot)); ok != (owner >= 0) || n.Addr() != "" && n.Port == 0 && n.TLSPort == 0 {
			t.Fatalf("slot %d: owner %d, %+v", slot, owner, n)
		}
	}
	for _, gap := range m.Uncovered() {
		covered += gap.Len()
	}
	if covered != SlotCount {
		t.Fatalf("%d slots owned or uncovered", covered)
	}
	for _, n := range m.Nodes {
		for _, r := range n.Ranges {
			if r.From > r.To || r.To >= SlotCount {
				t.Fatalf("range %v", r)
			}
		}
	}
}

func FuzzParseNodes(f *testing.F) {
	for _, test := range nodeLines {
		f.Add(test.line + "\n" + nodeLines[0].line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseNodes(text)
		if err != nil && len(m.Nodes) > 0 {
			t.Fatal("both nodes and an error")
		}
		checkMap(t, m)
	})
}

// FuzzReplies feeds any RESP value to the parsers of replies.
func FuzzReplies(f *testing.F) {
	names, err := filepath.Glob("testdata/*.resp")
	if err != nil || len(names) == 0 {
		f.Fatal("no recorded replies", err)
	}
	for _, name := range names {
		wire, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		v, err := resp.NewReader(bytes.NewReader(wire), resp.Limits{MaxElements: 4096}).Read()
		if err != nil {
			return
		}
		m, err := ParseSlots(v)
		if err != nil && len(m.Nodes) > 0 {
			t.Fatal("both nodes and an error")
		}
		checkMap(t, m)
		ParseRedirect(v.Err())
	})
}

func FuzzParseInfo(f *testing.F) {
	f.Add(infoText)
	f.Fuzz(func(t *testing.T, text string) {
		if info, err := ParseInfo(text); err == nil && info.State == "" {
			t.Fatal("no state and no error")
		}
	})
}
