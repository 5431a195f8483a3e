package caller_test

import (
	"fmt"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// TestWhoOverUnixSockets: two processes have the same address, PATH:FD, one after the other.
func TestWhoOverUnixSockets(t *testing.T) {
	const node, path = "10.0.0.1:6379", "/run/redis.sock"
	line := func(id, fd, age int64, name, cmd string) string {
		return fmt.Sprintf(`{"id":%d,"addr":"%s:%d","name":"%s","age":%d,"flags":"U","cmd":"%s"}`+"\n", id, path, fd,
			name, age, cmd)
	}
	rec := recording.New()
	rec.SetMeta(recording.MetaNodes, `["`+node+`"]`)
	for _, s := range []struct {
		at   int64
		body string
	}{
		{100e9, line(1, 8, 50, "shop", "get") + line(2, 9, 40, "batch", "keys")},
		{110e9, line(1, 8, 60, "shop", "set") + line(2, 9, 50, "batch", "get")},
		{120e9, line(1, 8, 70, "shop", "get") + line(3, 9, 6, "cron", "get") + line(4, 10, 0, "new", "get")},
		{130e9, line(1, 8, 80, "shop", "get") + line(3, 9, 16, "cron", "get")},
	} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: s.at, Source: recording.SourceServer, Subject: node, Name: "clients", Body: s.body,
		})
	}
	for _, e := range []struct {
		at, fd int64
		pid    int
	}{{101e9, 8, 81}, {101e9, 9, 92}, {121e9, 9, 93}, {121e9, 10, 94}} {
		rec.Snapshot(recording.Snapshot{
			TimeNs: e.at, Source: recording.SourceHost, Name: recording.SnapshotEnds,
			Subject: recording.ConnPrefix + fmt.Sprintf("%s:%d", path, e.fd),
			Body:    recording.Detail(recording.ConnEnds{Node: node, PID: e.pid, Comm: "worker"}),
		})
	}
	rec.Index()
	n := facts.New(rec).Nodes[0]
	for _, tt := range []struct {
		fd, at int64
		want   string
	}{
		{8, 100e9, path + ":8 (worker[81], name shop)"},
		{8, 130e9, path + ":8 (worker[81], name shop)"},
		{9, 110e9, path + ":9 (worker[92], name batch)"},
		{9, 112e9, path + ":9"}, // between the two
		{9, 120e9, path + ":9 (worker[93], name cron)"},
		// gone when its process was looked for: another one may have that number now
		{10, 120e9, path + ":10 (name new)"},
	} {
		if got := caller.WhoOf(n, fmt.Sprintf("%s:%d", path, tt.fd), "", tt.at).Text(); got != tt.want {
			t.Errorf("%d at %d s: %q, want %q", tt.fd, tt.at/1e9, got, tt.want)
		}
	}
	for command, want := range map[string]string{
		"KEYS": path + ":9 (worker[92], name batch)", // the only one seen to send it
		"GET":  path + ":0",
		"SCAN": path + ":0",
	} {
		s := account.Suspect{Command: command, Client: path + ":0", ToNs: 115e9}
		if got := caller.WhoSent(n, s).Text(); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	want := "clients over " + path + " (1), worker[81] (1), worker[93] (1)"
	if crowds := caller.CrowdsText(caller.Crowds(n), 9); crowds != want {
		t.Error(crowds)
	}
}
