package agent

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/needs"
)

// TestTimerSlack: all threads of the process may be woken up late afterwards.
func TestTimerSlack(t *testing.T) {
	needs.Real(t)
	slack := func() (all []string) {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if b, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns"); err == nil {
				all = append(all, strings.TrimSpace(string(b)))
			}
		}
		return all
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); errno == syscall.ENOTSUP {
		t.Skip("built with cgo, which slowpath is not: CGO_ENABLED=0 go test")
	}
	slackenTimers(timerSlack)
	defer slackenTimers(50 * time.Microsecond)
	after := slack()
	if len(after) == 0 {
		t.Skip("the kernel does not show the slack of a thread")
	}
	for _, ns := range after {
		if ns != fmt.Sprint(int64(timerSlack)) {
			t.Errorf("a thread has a slack of %s ns, want %d: %v", ns, timerSlack, after)
		}
	}
}
