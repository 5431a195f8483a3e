package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/lab/matrix"
	"slowpath/internal/report/layout"
)

// matrixSample is incident 000 beside what cannot be measured.
func matrixSample() *matrix.Matrix {
	m := &matrix.Matrix{
		Schema: matrix.Schema, Version: "test", Start: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		CPUs: 2, Settings: matrix.Full(), Cells: []matrix.Cell{
			{
				Client: "go-redis-v6", Server: "redis-6.0.16", Topology: matrix.Standalone, Library: "go-redis v6.15.9",
				Calls: 300000, RequestsPerSecond: 30000.4, P50Ns: 3.1e6, P99Ns: 7.25e6, MaxNs: 9e6,
				LimitedBy: "shared-cpu", Finding: "healthy", Seconds: 23,
			},
			{
				Client: "go-redis-v6", Server: "redis-6.0.16", Topology: matrix.Cluster, Library: "go-redis v6.15.9",
				Calls: 1170, RequestsPerSecond: 117, P50Ns: 549e6, P99Ns: 1.52e9, MaxNs: 2e9, Errors: 3,
				LastError: "\x1b[31m<b>i/o timeout</b>", LimitedBy: "unknown", Finding: "cmdinfo-once-lock",
				Confidence: 0.97, ExcessShare: 0.9, Others: []string{"short-lived-connections"}, Seconds: 24,
			},
			{
				Client: "go-redis-v8", Server: "redis-6.0.16", Topology: matrix.Cluster, Library: "go-redis v8.11.5",
				Calls: 417940, RequestsPerSecond: 41794, P50Ns: 2.1e6, P99Ns: 6e6, MaxNs: 7e6,
				LimitedBy: "client-cpu", Unwatched: "doctor: exit status 3", Seconds: 24,
			},
			{Client: "go-redis-v6", Server: "redis-7.0.15", Topology: matrix.Cluster, Empty: "no call succeeded: 12 " +
				"failed: got 4 elements in cluster info address, expected 2 or 3", Calls: 12, Errors: 12},
			{Client: "jedis", Server: "redis-7.0.15", Topology: matrix.Cluster, Empty: "the tool is missing: mvn is " +
				"not in PATH; apt-get install maven", Again: true},
		},
	}
	return m
}

func TestMatrixGolden(t *testing.T) {
	m := matrixSample()
	for _, style := range []layout.Style{{Width: 80}, {Width: 160, Unicode: true}} {
		m.Interrupted = style.Unicode
		var buf bytes.Buffer
		if err := Matrix(&buf, m, style); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(buf.String()) {
			if layout.Width(strings.TrimSuffix(line, "\n")) > style.Width {
				t.Errorf("wider than %d: %q", style.Width, line)
			}
		}
		golden(t, fmt.Sprintf("matrix.%d.golden", style.Width), buf.Bytes())
	}
}

// TestMatrixPage: the page needs nothing from elsewhere, has a box for each pair, and shows what libraries say as text.
func TestMatrixPage(t *testing.T) {
	var buf bytes.Buffer
	if err := MatrixPage(&buf, matrixSample()); err != nil {
		t.Fatal(err)
	}
	page := buf.String()
	for _, want := range []string{
		"cluster of 3 masters and 3 replicas", "<th>redis-7.0.15</th>", "41 794/s",
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

func TestMatrixJSON(t *testing.T) {
	var buf bytes.Buffer
	if err := MatrixJSON(&buf, matrixSample()); err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Parse(buf.Bytes())
	if err != nil || len(m.Cells) != 5 || m.Cells[1].LastError != matrixSample().Cells[1].LastError {
		t.Errorf("%v: %+v", err, m)
	}
}
