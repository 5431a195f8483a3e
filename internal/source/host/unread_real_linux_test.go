package host

import (
	"encoding/json"
	"net"
	"os"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// unread are the lists that were written, in order.
func (m *memory) unread(t *testing.T) (lists [][]recording.Unread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.snapshots {
		if s.Name != recording.SnapshotUnread {
			continue
		}
		var list []recording.Unread
		if err := json.Unmarshal([]byte(s.Body), &list); err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	return lists
}

// A request to a stopped server lies unread in its socket; its owner is recorded, and that it was read in the end.
func TestUnreadRequests(t *testing.T) {
	needs.Real(t, needs.Root, needs.RedisServer)
	redis := startRedis(t, 22019)
	c, err := net.Dial("tcp", "127.0.0.1:22019")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := redis.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Process.Signal(unix.SIGCONT) })
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	sink := watchFor(t, redis.Process.Pid, 22019, func(sink *memory) {
		await.Until(t, "somebody waits", func() bool { return len(sink.unread(t)) == 1 })
		if err := redis.Process.Signal(unix.SIGCONT); err != nil {
			t.Error(err)
		}
		await.Until(t, "nobody waits any more", func() bool { return len(sink.unread(t)) == 2 })
	})
	lists := sink.unread(t)
	if len(lists[0]) != 1 || lists[0][0].PID != os.Getpid() || lists[0][0].Connections != 1 || lists[0][0].Comm == "" {
		t.Errorf("%+v", lists[0])
	}
	if len(lists[1]) != 0 {
		t.Errorf("%+v", lists[1])
	}
}
