//go:build linux && (386 || amd64)

package tap

import "golang.org/x/sys/unix"

var archSyscalls = map[int]string{
	unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork", unix.SYS_RENAME: "rename",
	unix.SYS_UNLINK: "unlink",
}
