package agent

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestSystemd: the service manager is told what happens, and that the agent is alive as long as it is.
func TestSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	next := func() string {
		b := make([]byte, 100)
		if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	tellSystemd(systemdReady)
	if got := next(); got != "READY=1" {
		t.Errorf("got %q", got)
	}
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(100_000))
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan bool, 100)
	ended := make(chan bool)
	go func() {
		feedWatchdog(ctx, func() bool { asked <- true; return len(asked) > 1 }) // not alive at first
		close(ended)
	}()
	if got := next(); got != "WATCHDOG=1" || len(asked) < 2 {
		t.Errorf("got %q after %d looks", got, len(asked))
	}
	cancel()
	<-ended
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	tellSystemd(systemdStopping) // nobody is there
}
