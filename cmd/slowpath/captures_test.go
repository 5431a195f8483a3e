package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// run runs a command line in this process.
func runHere(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := appOn(&out, &errs)
	code = a.execute(t.Context(), args)
	return code, out.String(), errs.String()
}

// diagnosisOf is the verdict of a file.
func diagnosisOf(t *testing.T, path string) (d verdict.Diagnosis) {
	t.Helper()
	code, stdout, stderr := runHere(t, "doctor", path, "--json")
	if code != cli.ExitClean || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCaptures: captures of tcpdump on a real server (testdata/captures/make), one of them while it was stopped now and
// then. A healthy one is healthy. Of the other the verdict says that the time passed at the server and how that is
// known, and it makes up no cause.
func TestCaptures(t *testing.T) {
	d := diagnosisOf(t, "testdata/captures/healthy.pcap.gz")
	if d.Verdict != verdict.Healthy || d.Latency.Calls != 40 || len(d.Findings) > 0 {
		t.Errorf("%s, %d calls, %d findings", d.Summary, d.Latency.Calls, len(d.Findings))
	}
	d = diagnosisOf(t, "testdata/captures/stopped.pcap.gz")
	if d.Verdict != verdict.Inconclusive || d.Latency.Calls != 40 || len(d.Findings) > 0 {
		t.Errorf("%s, %d calls, %d findings", d.Summary, d.Latency.Calls, len(d.Findings))
	}
	for _, want := range []string{"passed at the server", "a delayed ACK", "its process did not answer"} {
		if !strings.Contains(d.Summary, want) {
			t.Errorf("%q does not say %q", d.Summary, want)
		}
	}
	if len(d.Account) == 0 || d.Account[0].Actor != recording.Server || d.Account[0].Share < 0.9 {
		t.Errorf("account: %+v", d.Account)
	}
	used := map[string]bool{}
	for _, s := range d.Sources {
		used[s.Name] = s.Used
		if !s.Used && !strings.Contains(s.Why, "packet capture") {
			t.Errorf("source %s is not used: %q", s.Name, s.Why)
		}
	}
	if !used[recording.SourceCapture] || used[recording.SourceTap] || used[recording.SourceHost] || len(used) < 5 {
		t.Errorf("sources: %+v", d.Sources)
	}
	if w := d.Worst; len(w) != 3 || w[0].Source != recording.SourceCapture {
		t.Errorf("worst calls: %+v", w)
	}
	code, stdout, stderr := runHere(t, "report", "testdata/captures/stopped.pcap.gz")
	if code != cli.ExitClean || !strings.Contains(stdout, "server unexplained") || stderr != "" {
		t.Errorf("report: exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = runHere(t, "trace", "testdata/captures/stopped.pcap.gz", "--min", "50ms", "--each")
	if code != cli.ExitClean || strings.Count(stdout, "GET")+strings.Count(stdout, "SET") < 6 {
		t.Errorf("trace: exit code %d, %s", code, stdout)
	}
}

// TestBothEnds: captures of both ends of calls to a server that its CPU quota throttled
// (testdata/captures/make-throttled), as in incident 004. Either says that the time passed at the server, and together
// they have it for each call.
func TestBothEnds(t *testing.T) {
	const client, server = "testdata/captures/throttled-client.pcap.gz", "testdata/captures/throttled-server.pcap.gz"
	for path, least := range map[string]float64{client: 0.95, server: 0.999} {
		d := diagnosisOf(t, path)
		checkThrottled(t, d, least)
	}
	for _, paths := range [][]string{{client, server}, {server, client}} {
		code, stdout, stderr := runHere(t, "doctor", paths[0], paths[1], "--json")
		if code != cli.ExitClean || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "calls of throttled-client.pcap.gz are joined with their server's end") {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		var d verdict.Diagnosis
		if err := json.Unmarshal([]byte(stdout), &d); err != nil {
			t.Fatal(err)
		}
		checkThrottled(t, d, 0.999)
	}
	code, stdout, _ := runHere(t, "trace", client, server, "--min", "20ms", "--json")
	if lines := strings.Count(stdout, "\n"); code != cli.ExitClean || lines < 60 ||
		strings.Count(stdout, `"side":"both"`) != lines {
		t.Errorf("trace: exit code %d, %s", code, stdout)
	}
}

func checkThrottled(t *testing.T, d verdict.Diagnosis, least float64) {
	t.Helper()
	if d.Verdict != verdict.Inconclusive || len(d.Findings) > 0 || d.Latency.Calls != 634 || d.Latency.SlowCalls != 73 {
		t.Errorf("%s, %+v", d.Summary, d.Latency)
	}
	if a := d.Account[0]; a.Actor != recording.Server || a.Share < least {
		t.Errorf("%+v, want %v of the time at the server", a, least)
	}
	if !strings.Contains(d.Summary, "acknowledged 60 requests after 41.7 ms (a delayed ACK)") {
		t.Errorf("%q does not say that requests were acknowledged by a delayed ACK", d.Summary)
	}
}

// TestNotCaptures: what is no capture, or has no calls, is one line that says so.
func TestNotCaptures(t *testing.T) {
	dir := t.TempDir()
	header := "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00"
	arp := header + "\x01\x00\x00\x60\x00\x00\x00\x00\x0e\x00\x00\x00\x0e\x00\x00\x00" +
		"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06"
	for _, c := range []struct{ name, body, say string }{
		{"empty.pcap", "", "not a slowpath recording"},
		{"text.pcap", "hello, world", "not a slowpath recording"},
		{"short.pcap", header[:12], "cut within its header"},
		{"none.pcap", header, "it has no packets"},
		{"arp.pcap", arp, "none of its 1 packets is a TCP segment"},
		{"cut.pcap.gz", "\x1f\x8b\x08", "not a packet capture"},
		{"cut.pcapng", "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00", "not a packet capture"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.body), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"doctor", "report", "trace"} {
			code, stdout, stderr := runHere(t, command, path)
			if code != cli.ExitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 ||
				!strings.HasPrefix(stderr, "slowpath: "+path) || !strings.Contains(stderr, c.say) {
				t.Errorf("%s of %s: exit code %d, %q, %q; want %q", command, c.name, code, stdout, stderr, c.say)
			}
		}
	}
	const real = "testdata/captures/stopped.pcap.gz"
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"doctor", filepath.Join(dir, "missing.pcap")}, "no such capture"},
		{[]string{"doctor", real, filepath.Join(dir, "arp.pcap")}, "no packet of one is in the other"},
		{[]string{"doctor", real, "testdata/captures/healthy.pcap.gz"}, "no packet of one is in the other"},
		{[]string{"doctor", real, filepath.Join(dir, "text.pcap")}, "a recording cannot be joined with a capture"},
		{[]string{"doctor", real, real}, "is named twice"},
		{[]string{
			"doctor", real, "testdata/captures/healthy.pcap.gz", "testdata/captures/throttled-client.pcap.gz",
		}, "these are 3 captures"},
		{[]string{"doctor", real, "--for", "8s"}, "--for has no effect"},
	} {
		code, _, stderr := runHere(t, c.args...)
		if code != cli.ExitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.say) {
			t.Errorf("%s: exit code %d, %q", fmt.Sprint(c.args), code, stderr)
		}
	}
}
