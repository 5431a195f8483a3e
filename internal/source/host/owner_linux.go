package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// owner finds the process that holds one of the sockets. Children of the server may hold it too (a BGSAVE child keeps
// the clients' sockets), so the process that says it is WantPID goes first, then the one that began first.
func owner(fs FS, inodes map[uint64]bool, q Query, port int) (Process, error) {
	if q.WantPID > 0 && holds(fs, q.WantPID, inodes) { // the PID of INFO, and not another process' PID in a container
		if p, err := describe(fs, q.WantPID, q, port); err == nil && !p.Foreign {
			return p, nil
		}
	}
	holders, denied := holdersOf(fs, inodes)
	var best Process
	for _, pid := range holders {
		p, err := describe(fs, pid, q, port)
		if err != nil {
			continue
		}
		if best.PID == 0 || (best.Foreign && !p.Foreign) || (best.Foreign == p.Foreign &&
			isChild(p, holders) < isChild(best, holders)) {
			best = p
		}
	}
	switch {
	case best.PID != 0:
		return best, nil
	case denied:
		return Process{}, fmt.Errorf("the server is on this host, but its process may not be seen: %w (run as root "+
			"or with CAP_SYS_PTRACE)", os.ErrPermission)
	default:
		return Process{}, ErrNotHere
	}
}

func isChild(p Process, holders []int) int {
	for _, pid := range holders {
		if p.PPID == pid {
			return 1
		}
	}
	return 0
}

// holdersOf lists the processes with an open descriptor of one of the sockets.
func holdersOf(fs FS, inodes map[uint64]bool) (holders []int, denied bool) {
	list, err := pids(fs)
	if err != nil {
		return nil, errors.Is(err, os.ErrPermission)
	}
	for _, pid := range list {
		err := eachSocketFD(fs, pid, func(inode uint64) bool {
			if inodes[inode] {
				holders = append(holders, pid)
				return false
			}
			return true
		})
		denied = denied || errors.Is(err, os.ErrPermission)
	}
	return holders, denied
}

// holds reports whether a process has one of the sockets open; false where that may not be seen.
func holds(fs FS, pid int, inodes map[uint64]bool) (found bool) {
	_ = eachSocketFD(fs, pid, func(inode uint64) bool {
		found = inodes[inode]
		return !found
	})
	return found
}

// eachSocketFD visits the inodes of the sockets that a process has open, until visit returns false.
func eachSocketFD(fs FS, pid int, visit func(inode uint64) bool) error {
	return eachSocketByFD(fs, pid, func(_ string, inode uint64) bool { return visit(inode) })
}

// eachSocketByFD does so with the numbers of their descriptors.
func eachSocketByFD(fs FS, pid int, visit func(fd string, inode uint64) bool) error {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		link, err := fs.Readlink(dir + "/" + name)
		if err != nil {
			continue
		}
		number, ok := strings.CutPrefix(link, "socket:[")
		if !ok {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
		if err == nil && !visit(name, inode) {
			return nil
		}
	}
	return nil
}
