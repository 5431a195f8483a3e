package host

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Addresses are the IPv4 addresses of the network namespace of a process, without those of loopback, in the order of
// /proc/PID/net/fib_trie; none where they may not be seen.
func Addresses(fs FS, pid int) (found []netip.Addr) {
	if fs == nil {
		fs = Root{}
	}
	b, err := fs.ReadFile(fmt.Sprintf("/proc/%d/net/fib_trie", pid))
	if err != nil {
		return nil
	}
	before := ""
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "/32 host LOCAL") {
			_, text, _ := strings.Cut(before, "|-- ")
			a, err := netip.ParseAddr(strings.TrimSpace(text))
			if err == nil && !a.IsLoopback() && !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
		before = line
	}
	return found
}
