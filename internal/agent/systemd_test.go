package agent

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// listenAsManager is the service manager. It gives a function that reads the next message.
func listenAsManager(t *testing.T) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
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
}

// TestSystemd: the service manager is told what happens.
func TestSystemd(t *testing.T) {
	next := listenAsManager(t)
	tellSystemd(systemdReady)
	if got := next(); got != "READY=1" {
		t.Errorf("got %q", got)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	tellSystemd(systemdStopping) // nobody is there
}

// TestWatchdog: twice per interval it is told that the agent lives, where it does.
func TestWatchdog(t *testing.T) {
	next := listenAsManager(t)
	t.Setenv("WATCHDOG_USEC", "20000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asked atomic.Int64
		go feedWatchdog(ctx, func() bool { return asked.Add(1) > 1 }) // not alive at first
		<-time.After(11 * time.Second)
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times within 11 of 20 s", n)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got, n := next(), asked.Load(); got != "WATCHDOG=1" || n != 2 {
			t.Errorf("got %q after %d looks", got, n)
		}
	})
}
