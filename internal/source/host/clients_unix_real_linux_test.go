package host

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// TestClientsOverUnixSockets: each connection over the server's Unix socket is recorded with its process, by the
// descriptor that CLIENT LIST has of it; also that of a client in another network namespace.
func TestClientsOverUnixSockets(t *testing.T) {
	needs.Real(t, needs.NetworkNamespaces, needs.RedisServer, needs.RedisCLI)
	dir, err := os.MkdirTemp("", "slowpath-unix") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "redis.sock")
	server := start(t, "redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--logfile", "/dev/null")
	await.Until(t, "redis listens", func() bool {
		c, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	want := map[string]int{} // the process by its command
	want["blpop"] = start(t, "redis-cli", "-s", path, "BLPOP", "nothing", "0").Process.Pid
	want["brpop"] = start(t, "unshare", "-n", "redis-cli", "-s", path, "BRPOP", "nothing", "0").Process.Pid
	addresses := map[string]string{}
	await.Until(t, "both are connected", func() bool {
		addresses = unixAddresses(t, path)
		return addresses["blpop"] != "" && addresses["brpop"] != ""
	})
	p, err := Locate(nil, Query{UnixPath: path})
	if err != nil || p.PID != server.Process.Pid {
		t.Fatalf("located %+v, %v", p, err)
	}
	sink := &memory{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, Options{Sink: sink, Node: node, Process: p}) }()
	for command, pid := range want {
		await.Until(t, command+" is recorded", func() bool {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			return slices.ContainsFunc(sink.snapshots, func(s recording.Snapshot) bool {
				var ends recording.ConnEnds
				return s.Subject == recording.ConnPrefix+path+":"+addresses[command] &&
					s.Name == recording.SnapshotEnds && json.Unmarshal([]byte(s.Body), &ends) == nil &&
					ends.PID == pid && ends.Comm == "redis-cli" && ends.Node == node
			})
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// unixAddresses are the descriptors of a server's clients, by the command that they sent last.
func unixAddresses(t *testing.T, path string) map[string]string {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte("CLIENT LIST\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 1<<16)
	n, err := c.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(reply[:n])) {
		fields := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		out[fields["cmd"]] = fields["fd"]
	}
	return out
}
