package benchmark

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/house/golden"
)

// TestLargeSet: the table of docs/benchmark.md is what the kept answers get for the kept truth of the large set.
func TestLargeSet(t *testing.T) {
	dir := t.TempDir()
	golden.Unpack(t, "large.tar.zst", dir)
	f, err := os.Open(filepath.Join(dir, "large", "answers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	answers, err := ReadAnswers(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Set{filepath.Join(dir, "large")}.Grade(answers)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	r.Table(&table)
	text, err := os.ReadFile("../../../docs/benchmark.md")
	if err != nil || !strings.Contains(string(text), "```text\n"+table.String()+"```") {
		t.Errorf("docs/benchmark.md has another table (%v) than:\n%s", err, table.String())
	}
}
