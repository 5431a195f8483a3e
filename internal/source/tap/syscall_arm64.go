//go:build linux

package tap

import "golang.org/x/sys/unix"

var archSyscalls = map[int]string{unix.SYS_RENAMEAT: "renameat", unix.SYS_UNLINKAT: "unlinkat"}
