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

// TestRate: many single threads are sampled less often, so that all of them together take no more.
func TestRate(t *testing.T) {
	single := make([]Target, 64)
	for i := range single {
		single[i] = Target{PID: i + 1, TID: i + 1}
	}
	for _, tt := range []struct {
		targets []Target
		want    uint64
	}{
		{nil, Rate},
		{single[:1], Rate},
		{single[:4], Rate},
		{single[:8], 50},
		{single, 6},
		{append([]Target{{PID: 100}}, single...), Rate},
	} {
		if got := rateFor(tt.targets); got != tt.want {
			t.Errorf("%d targets: %d, want %d", len(tt.targets), got, tt.want)
		}
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
