package host

import (
	"net"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/needs"
)

// TestQueues: what waits in the queueing discipline of a device that lets little through is seen, with its names.
func TestQueues(t *testing.T) {
	needs.Real(t, needs.Root)
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skip(err)
	}
	inNewNetNS(t, func() {
		for _, line := range [][]string{
			{"ip", "link", "set", "lo", "up"},
			{"tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "8kbit", "burst", "1600", "limit", "1mb"},
		} {
			if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v %s", line, err, out)
				return
			}
		}
		c, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for range 20 { // the device lets one of these through each second
			_, _ = c.Write(make([]byte, 1000))
		}
		table, err := openDiag(nil, unix.Gettid())
		if err != nil {
			t.Error(err)
			return
		}
		defer table.Close()
		seen := map[string]uint32{}
		if err := table.Queues(func(q Queue) bool { seen[q.Device+" "+q.Kind] = q.Bytes; return true }); err != nil {
			t.Error(err)
		}
		if seen["lo tbf"] == 0 {
			t.Errorf("nothing waits: %v", seen)
		}
	})
}
