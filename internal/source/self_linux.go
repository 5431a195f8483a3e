package source

import (
	"fmt"
	"os"
	"path/filepath"
)

// ownDelay is the time in nanoseconds that the threads of this process have stood in the run queue (second field of
// /proc/PID/task/TID/schedstat). Threads that have ended are missing, so that it can fall.
func ownDelay() (int64, bool) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil || len(files) == 0 {
		return 0, false
	}
	var sum int64
	for _, f := range files {
		var run, delay int64
		if b, err := os.ReadFile(f); err == nil {
			if _, err := fmt.Sscan(string(b), &run, &delay); err == nil {
				sum += delay
			}
		}
	}
	return sum, true
}
