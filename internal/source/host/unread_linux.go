package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// maxUnread bounds the connections whose owners are searched.
const maxUnread = 500

// snapshotUnread records who waits for a server whose main thread does not run: the owners of the connections with
// bytes that it has not read. While it runs, other connections have such bytes in each round, so none is recorded.
func (w *watch) snapshotUnread() {
	var list []recording.Unread
	if w.stalled && len(w.unread) > 0 {
		list = w.ownersOfUnread()
	}
	if slices.Equal(list, w.waiters) {
		return
	}
	w.waiters = list
	w.snapshot(w.Node, recording.SnapshotUnread, append([]recording.Unread{}, list...))
}

// ownersOfUnread groups the connections by the process at their other end, or, for those of other hosts, by the host.
func (w *watch) ownersOfUnread() (list []recording.Unread) {
	byInode, hosts := map[uint64]string{}, map[netip.Addr]int{}
	for _, a := range w.unread {
		hosts[a.Addr()]++
	}
	if spaces, err := netSpaces(w.FS); err == nil {
		for _, space := range spaces {
			eachSocket(w.FS, space.pid, SocketQuery{States: 1 << tcpEstablished}, func(s *Socket) bool {
				if _, seen := byInode[s.Inode]; s.Inode != 0 && slices.Contains(w.unread, s.Local) && !seen {
					byInode[s.Inode] = s.Local.String()
					hosts[s.Local.Addr()]--
				}
				return true
			})
		}
	}
	for pid, count := range countOwned(w.ownersOf(byInode)) {
		one := recording.Unread{PID: pid, Connections: count}
		if b, ok := w.read(fmt.Sprintf("/proc/%d/comm", pid)); ok {
			one.Comm = strings.TrimSpace(string(b))
		}
		list = append(list, one)
	}
	for host, count := range hosts {
		if count > 0 {
			list = append(list, recording.Unread{Host: host.Unmap().String(), Connections: count})
		}
	}
	slices.SortFunc(list, func(a, b recording.Unread) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Host, b.Host))
	})
	return list
}
