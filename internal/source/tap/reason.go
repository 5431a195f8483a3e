package tap

import (
	"errors"
	"strings"
)

// Reason is why the tap cannot run, without what the kernel said in detail.
func Reason(err error) string {
	for _, known := range []error{ErrPrivilege, ErrNoBTF, ErrFiles, ErrLinux} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// Remedy is what would make it run.
func Remedy(err error) string {
	switch {
	case errors.Is(err, ErrPrivilege):
		return "run as root, or: setcap cap_bpf,cap_perfmon+ep $(command -v slowpath)"
	case errors.Is(err, ErrNoBTF):
		return "a kernel with CONFIG_DEBUG_INFO_BTF (those of the distributions have it)"
	case errors.Is(err, ErrNoLoop):
		return "Linux 5.17 or newer (Ubuntu 22.04: apt-get install linux-generic-hwe-22.04; Debian 12 has 6.1)"
	case errors.Is(err, ErrNoHook):
		return "Linux 5.17 or newer with fentry (CONFIG_FUNCTION_TRACER), or 6.3 or newer"
	case errors.Is(err, ErrFiles):
		return "raise the limit: ulimit -n 1024"
	case errors.Is(err, ErrLinux):
		return "run slowpath on the host of the server or of a client"
	}
	return "report it with the kernel's version"
}
