package layout

import (
	"strings"
	"testing"
)

// TestTable: no line of a table is longer than the terminal, from 40 columns on, and no cell is lost.
func TestTable(t *testing.T) {
	head := []string{"NAME", "LANGUAGE", "MODES", "STATE"}
	rows := [][]string{
		{"go-redis-v6", "Go", "standalone cluster ring", "built"},
		{"spring-cache", "Java", "standalone", "needs mvn: apt-get install maven"},
	}
	for width := 40; width <= 240; width++ {
		p := New(Style{Width: width, Unicode: true})
		p.Table(head, rows)
		text := string(p.Bytes())
		for line := range strings.Lines(text) {
			if Width(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("width %d: %q", width, line)
			}
		}
		for _, row := range rows {
			for _, cell := range row {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), cell) {
					t.Errorf("width %d: %q is missing:\n%s", width, cell, text)
				}
			}
		}
		if in := strings.HasPrefix(text, "NAME "); in != (width >= 81) {
			t.Errorf("width %d: in columns: %v\n%s", width, in, text)
		}
	}
}
