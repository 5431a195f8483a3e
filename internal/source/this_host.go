package source

import (
	"net"
	"os"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// describeHost writes which host this is, as far as it says.
func describeHost(sink recording.Sink) {
	if name, err := os.Hostname(); err == nil {
		sink.SetMeta(recording.MetaHost, name)
	}
	if all := hostAddresses(); len(all) > 0 {
		sink.SetMeta(recording.MetaAddresses, recording.Detail(all))
	}
	if release, err := (hostfs.Root{}).ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		sink.SetMeta(recording.MetaKernel, strings.TrimSpace(string(release)))
	}
}

// maxAddresses bounds the addresses of this host that are told.
const maxAddresses = 64

// hostAddresses are the addresses by which others reach this host.
func hostAddresses() (out []string) {
	all, _ := net.InterfaceAddrs() // without rights there are none
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && len(out) < maxAddresses {
			out = append(out, n.IP.String())
		}
	}
	return out
}
