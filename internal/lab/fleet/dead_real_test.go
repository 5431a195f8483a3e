package fleet

import (
	"net"
	"syscall"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// TestDeadServerHasNoPort: where a killed server is said to have ended, all its threads have, and its port is free.
func TestDeadServerHasNoPort(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, get(t, servers.Redis7015), Spec{})
	for range 30 {
		if err := syscall.Kill(i.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for i.Running() {
		}
		l, err := net.Listen("tcp", i.Addr)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if err := i.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
