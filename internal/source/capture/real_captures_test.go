package capture_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
)

// TestRealCaptures: files of tcpdump, of redis-benchmark and a Redis 7.0 in two network namespaces on Linux 6.18.
func TestRealCaptures(t *testing.T) {
	for _, c := range []struct {
		file, verdict, cause string
		say                  string // in a line of the proof or the summary
	}{
		// tun devices, with a process between that holds each packet for 10 ms
		{"far-client", verdict.Findings, "rtt-floor", "a SYN has its answer after 20.2 ms"},
		{"far-server", verdict.Healthy, "", "none of 300 calls"},
	} {
		t.Run(c.file, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join("testdata", c.file+".pcap.zst"))
			if err != nil {
				t.Fatal(err)
			}
			rec, _, err := readFile(t, file)
			if err != nil {
				t.Fatal(err)
			}
			d := verdict.Diagnose(rec, "test")
			said, first := d.Summary, ""
			for i, f := range d.Findings {
				if i == 0 {
					first = f.Cause
				}
				for _, e := range f.Evidence {
					said += "\n" + e.Text
				}
			}
			if d.Verdict != c.verdict || first != c.cause || !strings.Contains(said, c.say) {
				t.Errorf("%s %s:\n%s", d.Verdict, first, said)
			}
		})
	}
}
