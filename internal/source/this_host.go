package source

import (
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
	if all := hostfs.Addresses(); len(all) > 0 {
		sink.SetMeta(recording.MetaAddresses, recording.Detail(all))
	}
	if release, err := (hostfs.Root{}).ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		sink.SetMeta(recording.MetaKernel, strings.TrimSpace(string(release)))
	}
}
