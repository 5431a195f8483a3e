package matrix

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/report/layout"
)

// varied is a library that is slow in a cluster, others that are not, and cells without numbers.
func varied() *Matrix {
	m := &Matrix{
		Schema: Schema, Version: "test", Start: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		CPUs: 2, Settings: Full(), Cells: []Cell{
			{
				Client: "go-redis-v6", Server: "redis-6.0.16", Topology: Standalone, Library: "go-redis v6.15.9",
				Calls: 300000, RequestsPerSecond: 30000.4, P50Ns: 3.1e6, P99Ns: 7.25e6, MaxNs: 9e6,
				LimitedBy: "shared-cpu", Finding: "healthy", Seconds: 23,
			},
			{
				Client: "go-redis-v6", Server: "redis-6.0.16", Topology: Cluster, Library: "go-redis v6.15.9",
				Calls: 1170, RequestsPerSecond: 117, MeanNs: 612e6, P50Ns: 549e6, P99Ns: 1.52e9, MaxNs: 2e9,
				Errors: 3, ErrorKinds: map[string]int64{"connection": 1, "timeout": 2},
				LastError: "\x1b[31m<b>i/o timeout</b>", LimitedBy: "unknown", Finding: "cmdinfo-once-lock",
				Confidence: 0.97, ExcessShare: 0.9, Others: []string{"short-lived-connections"}, Seconds: 24,
			},
			{
				Client: "go-redis-v8", Server: "redis-6.0.16", Topology: Cluster, Library: "go-redis v8.11.5",
				Calls: 417940, RequestsPerSecond: 41794, P50Ns: 2.1e6, P99Ns: 6e6, MaxNs: 7e6,
				LimitedBy: "client-cpu", Unwatched: "doctor: exit status 3", Seconds: 24,
			},
			{Client: "go-redis-v6", Server: "redis-7.0.15", Topology: Cluster, Empty: "no call succeeded: 12 " +
				"failed: got 4 elements in cluster info address, expected 2 or 3", Calls: 12, Errors: 12},
			{Client: "jedis", Server: "redis-7.0.15", Topology: Cluster, Empty: "the tool is missing: mvn is " +
				"not in PATH; apt-get install maven", Again: true},
		},
	}
	return m
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with its golden file, and its lines with the width.
func golden(t *testing.T, name string, style layout.Style, got []byte) {
	t.Helper()
	fits(t, got, style.Width)
	path := filepath.Join("testdata", fmt.Sprintf("%s.%d.golden", name, style.Width))
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, got)
	}
}

func fits(t *testing.T, text []byte, width int) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		if layout.Width(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("wider than %d: %q", width, line)
		}
	}
}

// TestWidths: from 40 columns on no line is longer than the terminal is wide.
func TestWidths(t *testing.T) {
	pools := swept(6, map[string][]float64{"borrow100": near(26000), "per-thread1000": near(51000)})
	for width := 40; width <= 240; width += 5 {
		style := layout.Style{Width: width, Unicode: true}
		var buf bytes.Buffer
		if err := errors.Join(Text(&buf, varied(), style), PoolText(&buf, pools, style)); err != nil {
			t.Fatal(err)
		}
		fits(t, buf.Bytes(), width)
	}
}

func TestTextGolden(t *testing.T) {
	m := varied()
	for _, style := range []layout.Style{{Width: 80}, {Width: 160, Unicode: true}} {
		m.Interrupted = style.Unicode
		var buf bytes.Buffer
		if err := Text(&buf, m, style); err != nil {
			t.Fatal(err)
		}
		golden(t, "matrix", style, buf.Bytes())
	}
}

// TestPage: the page needs nothing from elsewhere, has a box for each pair, and shows what libraries say as text.
func TestPage(t *testing.T) {
	var buf bytes.Buffer
	if err := Page(&buf, varied()); err != nil {
		t.Fatal(err)
	}
	page := buf.String()
	for _, want := range []string{
		"cluster of 3 masters and 3 replicas", "<th>redis-7.0.15</th>", "41 794/s",
		"mean 612 ms, p50 549 ms", "errors: 2 timeout, 1 connection; last error: ",
		"cmdinfo-once-lock", "not measured", "apt-get install maven", "&lt;b&gt;i/o timeout",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q:\n%s", want, page)
		}
	}
	for _, bad := range []string{"<b>i/o", "\x1b", "http://", "https://", "src=", "<script", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if boxes := strings.Count(page, "<td>"); boxes != 1+2*3 {
		t.Errorf("%d boxes", boxes)
	}
}

// TestPageOfHostileNames: whatever a library, a server or an error calls itself, the page shows it as text.
func TestPageOfHostileNames(t *testing.T) {
	const name = `"><script>alert(1)</script><img onerror=alert(1) src=x>'` + "\x1b]0;x\x07\u202e"
	m := varied()
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Client, c.Server, c.Library, c.LastError, c.LimitedBy = c.Client+name, c.Server+name, name, name, name
		c.Finding, c.Others, c.Unwatched, c.ErrorKinds = name, []string{name}, name, map[string]int64{name: 1}
		if c.Empty != "" {
			c.Empty = name
		}
	}
	var buf bytes.Buffer
	if err := Page(&buf, m); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", `title=""`, "\x1b", "\x07", "\u202e", "ZgotmplZ"} {
		if strings.Contains(buf.String(), bad) {
			t.Errorf("the page has %q:\n%s", bad, buf.String())
		}
	}
}

func TestJSON(t *testing.T) {
	var buf bytes.Buffer
	if err := JSON(&buf, varied()); err != nil {
		t.Fatal(err)
	}
	m, err := Parse(buf.Bytes())
	if err != nil || len(m.Cells) != 5 || m.Cells[1].LastError != varied().Cells[1].LastError ||
		m.Cells[1].ErrorKinds["timeout"] != 2 || m.Cells[1].MeanNs != 612e6 {
		t.Errorf("%v: %+v", err, m)
	}
}
