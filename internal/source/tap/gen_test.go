package tap

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsAreCurrent: the committed programs were compiled from the committed sources.
func TestProgramsAreCurrent(t *testing.T) {
	sum := sha256.New()
	headers, _ := filepath.Glob("bpf/*.h") // the pattern is well formed
	for _, name := range append(append([]string{"bpf/generate"}, headers...), "bpf/tap.bpf.c") {
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
		t.Error("the sources in bpf changed since the programs were compiled: run make bpf")
	}
}
