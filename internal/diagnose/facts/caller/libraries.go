package caller

import (
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// byLibName are client libraries by the beginning of the name that they report (CLIENT SETINFO, or the name of
// Lettuce's refresh), in lower case. redigo reports none.
var byLibName = [][2]string{
	{"go-redis", "go-redis"},
	{"rueidis", "rueidis"},
	{"valkey-go", "valkey-go"},
	{"jedis", "jedis"},
	{"lettuce", "lettuce"},
	{"redisson", "redisson"},
	{"redis-py", "redis-py"},
	{"valkey-py", "valkey-py"},
	{"node-redis", "node-redis"},
	{"ioredis", "ioredis"},
	{"iovalkey", "iovalkey"},
	{"phpredis", "phpredis"},
	{"predis", "predis"},
	{"se.redis", "stackexchange"},
	{"stackexchange", "stackexchange"},
	{"redis-rs", "redis-rs"},
	{"redis-rb", "redis-rb"},
	{"redigo", "redigo"},
	{"glide", "valkey-glide"},
}

// librariesOfRuntime are the libraries that a program of this name can have, where no more is known of it.
var librariesOfRuntime = map[string][]string{
	"python": {"redis-py", "valkey-py", "aioredis", "valkey-glide"},
	"java":   {"jedis", "lettuce", "redisson", "valkey-glide"},
	"node":   {"node-redis", "ioredis", "iovalkey", "valkey-glide"},
	"php":    {"phpredis", "predis"},
	"ruby":   {"redis-rb"},
	"dotnet": {"stackexchange"},
	"go":     {"go-redis", "redigo", "rueidis", "valkey-go", "valkey-glide"},
}

// libraryNamed is the library that reports a name, or whose name begins with the eight letters that the tap
// keeps; empty for none.
func libraryNamed(name string) string {
	name = strings.ToLower(name)
	for _, k := range byLibName {
		if strings.HasPrefix(name, k[0]) || len(name) == 8 && strings.HasPrefix(k[0], name) {
			return k[1]
		}
	}
	return ""
}

// LibraryOfClient is the library that a line of CLIENT LIST names; empty where it names none.
func LibraryOfClient(c Client) string {
	if c.LibName == "" {
		return libraryNamed(c.Name)
	}
	return libraryNamed(c.LibName)
}

// Handshakes are those of the node's new connections.
func Handshakes(n *facts.Node) (out []*recording.HandshakeDetail) {
	for _, c := range Callers(n) {
		for _, k := range c.Conns {
			if k.Handshake != nil {
				out = append(out, k.Handshake)
			}
		}
	}
	return out
}

// Libraries are those that the node's clients use, as far as any source shows it: what their processes are built with
// or have open, what they report themselves, also to a server that does not know CLIENT SETINFO; else what is installed
// for them.
func Libraries(n *facts.Node) (out []recording.Library) {
	add := func(l recording.Library) {
		if !slices.ContainsFunc(out, func(o recording.Library) bool {
			return o.Name == l.Name && (o.Version == l.Version || l.Version == "")
		}) {
			out = append(out, l)
		}
	}
	var installed []recording.Library
	for _, p := range hosts.Processes(n.Case) {
		for _, l := range p.Libraries {
			if l.How == recording.LibraryInstalled {
				installed = append(installed, l)
			} else {
				add(l)
			}
		}
	}
	for _, c := range Clients(n) {
		if name := LibraryOfClient(c); name != "" {
			add(recording.Library{Name: name, Version: c.LibVer})
		}
	}
	for _, g := range Handshakes(n) {
		if name := libraryNamed(g.Library); name != "" && !slices.ContainsFunc(out,
			func(o recording.Library) bool { return o.Name == name }) {
			add(recording.Library{Name: name, Version: number(g.Version)})
		}
	}
	for _, l := range installed {
		known := slices.ContainsFunc(out, func(o recording.Library) bool {
			return slices.ContainsFunc(installed, func(i recording.Library) bool { return i.Name == o.Name })
		})
		if !known { // the name that it reports says which of them it is
			add(l)
		}
	}
	return out
}

// PossibleLibraries are the libraries that the programs of callers can have, by the names of their runtimes, or since
// they are Go programs; nil where that is not known of one. Those of a library that is known have that one.
func PossibleLibraries(n *facts.Node, callers []*Caller) (names []string) {
	for _, c := range callers {
		possible := possibleLibraries(n, c)
		if len(possible) == 0 {
			return nil
		}
		names = append(names, possible...)
	}
	return names
}

func possibleLibraries(n *facts.Node, c *Caller) (names []string) {
	for _, l := range LibrariesOf(n, c) {
		names = append(names, l.Name)
	}
	if len(names) > 0 {
		return names
	}
	if hosts.IsGo(n.Case, c.PID) {
		return librariesOfRuntime["go"]
	}
	for name, list := range librariesOfRuntime {
		if name != "go" &&
			(strings.HasPrefix(c.Comm, name) || strings.HasPrefix(hosts.Programs(n.Case)[c.PID].Comm, name)) {
			names = append(names, list...)
		}
	}
	return names
}

// number is a version without what follows its numbers.
func number(version string) string {
	end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(version)
	}
	return strings.TrimRight(version[:end], ".")
}

// MajorVersion is the first number of a version; empty where there is none.
func MajorVersion(version string) string {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if _, err := strconv.Atoi(major); err != nil {
		return ""
	}
	return major
}

// UsesVersionBelow reports whether a library is in use in a version below a major one, and in which.
func UsesVersionBelow(n *facts.Node, name string, major int) (version string, ok bool) {
	for _, l := range Libraries(n) {
		if m, err := strconv.Atoi(MajorVersion(l.Version)); l.Name == name && err == nil && m < major {
			return l.Version, true
		}
	}
	return "", false
}
