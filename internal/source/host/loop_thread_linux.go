package host

import (
	"fmt"
	"strconv"
	"strings"
)

// envoyWorker begins the names of the threads of Envoy that pass calls on (its worker_impl.cc).
const envoyWorker = "wrk:worker_"

// LoopThread is the thread of a process that runs the event loop for its connections: the first one, by which the
// process is known, except in an Envoy with one worker. Of several workers none is the one.
func LoopThread(fs FS, pid int) int {
	names, err := fs.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return pid
	}
	worker := 0
	for _, name := range names[:min(len(names), maxThreads)] {
		tid, err := strconv.Atoi(name)
		if err != nil || !strings.HasPrefix(readLine(fs, fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid)), envoyWorker) {
			continue
		}
		if worker != 0 {
			return pid
		}
		worker = tid
	}
	if worker == 0 {
		return pid
	}
	return worker
}
