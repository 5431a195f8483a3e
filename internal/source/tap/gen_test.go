package tap

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestHeadersUseThoseBefore: tap.bpf.c includes each header once, in the order of the table in docs/architecture.md.
// None declares a function of a later one, so that a header can be read with those before it alone.
func TestHeadersUseThoseBefore(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := func(text, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	includes := `(?m)^#include "(.*)"$`
	order := first(read("bpf/tap.bpf.c"), includes)
	headers, _ := filepath.Glob("bpf/*.h") // the pattern is well formed
	if len(headers) != len(order) {
		t.Errorf("bpf has %d headers, tap.bpf.c includes %d", len(headers), len(order))
	}
	prototype := regexp.MustCompile(`(?m)^\w[^;{}#/]*\);`)
	for _, name := range order {
		text := read("bpf/" + name)
		if more := first(text, includes); more != nil {
			t.Errorf("%s includes %v", name, more)
		}
		for _, p := range prototype.FindAllString(text, -1) {
			t.Errorf("%s declares what another header defines: %s", name, p)
		}
	}
	_, table, _ := strings.Cut(read("../../../docs/architecture.md"), "\n## The tap\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var documented []string
	for _, column := range first(table, "(?m)^\\| (`.*?`) \\|") {
		documented = append(documented, first(column, "`(.*?)`")...)
	}
	if !slices.Equal(documented, order) {
		t.Errorf("docs/architecture.md has %v, tap.bpf.c %v", documented, order)
	}
}
