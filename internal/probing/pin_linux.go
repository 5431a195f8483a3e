package probing

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/cli"

	"golang.org/x/sys/unix"
)

// checkPin refuses CPUs on which this process may not run.
func (e *Each) checkPin() error {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("asking for the CPUs of this process: %w", err)
	}
	var list []string
	for cpu := range len(may) * strconv.IntSize {
		if may.IsSet(cpu) {
			list = append(list, strconv.Itoa(cpu))
		}
	}
	for i, cpu := range e.Pin {
		switch {
		case cpu < 0 || !may.IsSet(cpu):
			return cli.Usagef("--pin %d: slowpath may not run on that CPU; give some of %s", cpu, strings.Join(list,
				","))
		case slices.Contains(e.Pin[:i], cpu):
			return cli.Usagef("--pin: CPU %d is there twice; give it once", cpu)
		}
	}
	return nil
}

// pinProcess lets all threads of this process run on one CPU only. Threads that come later inherit that.
func pinProcess(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	for pinned := map[int]bool{}; ; { // until no thread is new: one that was not pinned yet may have started it
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("pinning slowpath to CPU %d: %w", cpu, err)
		}
		before := len(pinned)
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || pinned[tid] {
				continue
			}
			pinned[tid] = true
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("pinning slowpath to CPU %d: %w", cpu, err)
			}
		}
		if len(pinned) == before {
			return nil
		}
	}
}
