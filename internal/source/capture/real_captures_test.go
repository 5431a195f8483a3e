package capture_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
)

// TestRealCaptures: files of tcpdump, of redis-benchmark or a client in Python and a Redis 7.0 in network
// namespaces on Linux 6.18.
func TestRealCaptures(t *testing.T) {
	for _, c := range []struct {
		file, verdict, cause string
		say                  string // in a line of the proof or the summary
	}{
		// tun devices, with a process between that holds each packet for 10 ms
		{"far-client", verdict.Findings, "rtt-floor", "a SYN has its answer after 20.2 ms"},
		{"far-server", verdict.Healthy, "", "none of 300 calls"},
		// four namespaces: the MTU in the middle is 1400, that of the ends 1500; nftables drops ICMP
		{
			"hole-client", verdict.Findings, "packet-loss-rto",
			"from 10.91.1.1 to 10.91.3.2:7913: segments of 1 448 bytes and more were sent again in vain",
		},
		{
			"hole-server", verdict.Findings, "packet-loss-rto",
			"from 10.91.3.2:7913 to 10.91.1.1: segments of 1 448 bytes and more were sent again in vain",
		},
		// there nftables drops one of ten packets to the server, of any size
		{"loss-client", verdict.Findings, "packet-loss-rto", "slow calls had retransmissions"},
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
