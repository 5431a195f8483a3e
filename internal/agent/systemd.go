package agent

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// Messages of sd_notify(3).
const (
	systemdReady    = "READY=1"
	systemdStopping = "STOPPING=1"
	systemdAlive    = "WATCHDOG=1"
)

// tellSystemd sends a message to the service manager, if one has started slowpath (sd_notify(3)).
func tellSystemd(message string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return // the manager is gone, which is nothing to say to it
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(message))
}

// feedWatchdog tells the service manager twice per its interval that the agent is alive, as long as alive says so.
func feedWatchdog(ctx context.Context, alive func() bool) {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || us <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return
	}
	tick := time.NewTicker(max(time.Duration(us)*time.Microsecond/2, time.Second/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if alive() {
				tellSystemd(systemdAlive)
			}
		}
	}
}
