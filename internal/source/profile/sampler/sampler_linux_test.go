package sampler

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestProgramIsCurrent: the committed program was compiled from the committed sources.
func TestProgramIsCurrent(t *testing.T) {
	sum := sha256.New()
	for _, name := range []string{"bpf/generate", "bpf/sampler.bpf.c", "../../tap/bpf/kernel.h"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(b)
	}
	want, err := os.ReadFile("bpf/SUM")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.TrimSpace(string(want)) {
		t.Error("the sources changed since the program was compiled: run make bpf")
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"0\n": {0}, "0-2,5": {0, 1, 2, 5}, "": nil, "3-1": nil,
		"0-99999999": nil,
	} {
		got, err := parseCPUs(text)
		if !slices.Equal(got, want) && want != nil || (err != nil) != (want == nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
