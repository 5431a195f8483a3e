package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md again")

// TestMetricsDocument: the table of docs/metrics.md is made of the families.
func TestMetricsDocument(t *testing.T) {
	const (
		file       = "../../../docs/metrics.md"
		begin, end = "<!-- begin of metrics -->\n", "<!-- end of metrics -->\n"
	)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	var want strings.Builder
	want.WriteString("\n| name | type | labels | what |\n|---|---|---|---|\n")
	for _, f := range families {
		labels := ""
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.name, f.kind, labels, f.help)
	}
	want.WriteString("\n")
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want.String() {
		t.Errorf("%s is not what the code has: run make docs", file)
	}
}

// TestFilesThatShip name no metric that does not exist.
func TestFilesThatShip(t *testing.T) {
	known := map[string]bool{}
	for _, f := range families {
		known[f.name] = true
		if f.kind == histogram {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				known[f.name+suffix] = true
			}
		}
	}
	for _, file := range []string{
		"../../../packaging/prometheus/slowpath.rules.yml", "../../../packaging/prometheus/slowpath.rules_test.yml",
		"../../../packaging/grafana/slowpath.json", "../../../docs/metrics.md",
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, word := range strings.FieldsFunc(string(b), func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z')
		}) {
			if strings.HasPrefix(word, "slowpath_") {
				n++
				if !known[word] {
					t.Errorf("%s names %s, which does not exist", file, word)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s names no metric", file)
		}
	}
}

// TestLabels: whatever a client calls itself is a valid, printable and short value.
func TestLabels(t *testing.T) {
	for _, s := range []string{"", "GET", "a\xff\xfeb", "x\n\x1b[31m\u202e", strings.Repeat("ä", 100), "\U0001F600"} {
		got := label(s)
		if !utf8.ValidString(got) || len(got) > 64 || strings.ContainsAny(got, "\n\x1b\u202e") {
			t.Errorf("%q became %q", s, got)
		}
		if one := short(s, 24); len(one) > 24 || !utf8.ValidString(one) {
			t.Errorf("%q became %q", s, one)
		}
	}
}
