package hostfs

import (
	"net/netip"
	"strings"
)

const (
	hostsFile    = "/etc/hosts"
	maxHostsFile = 1 << 20
	maxHostName  = 253 // bytes, without the last dot (RFC 1035)
)

// HostNames are the first names that /etc/hosts has for addresses; none where it cannot be read.
func HostNames(fs FS) map[netip.Addr]string {
	names := map[netip.Addr]string{}
	text, err := ReadRegular(fs, hostsFile, maxHostsFile)
	if err != nil {
		return names
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if a = a.Unmap(); err == nil && names[a] == "" {
			names[a] = HostName(f[1])
		}
	}
	return names
}

// HostName is the name of a host without its last dot; empty where it is none, such as one that drives a terminal.
func HostName(s string) string {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxHostName || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) {
		return ""
	}
	return s
}
