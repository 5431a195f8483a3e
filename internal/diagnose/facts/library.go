package facts

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// byLibName are client libraries by the beginning of what they call themselves (CLIENT SETINFO, or the name of
// Lettuce's refresh), in lower case. redigo says nothing.
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

// ofRuntime are the libraries that a program of this name can have, where no more is known of it.
var ofRuntime = map[string][]string{
	"python": {"redis-py", "valkey-py", "aioredis", "valkey-glide"},
	"java":   {"jedis", "lettuce", "redisson", "valkey-glide"},
	"node":   {"node-redis", "ioredis", "iovalkey", "valkey-glide"},
	"php":    {"phpredis", "predis"},
	"ruby":   {"redis-rb"},
	"dotnet": {"stackexchange"},
}

// libraryNamed is the library that calls itself so, or whose name begins with the eight letters that the kernel source
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

// Of libraries whose CLIENT SETINFO was not seen, because they are older, or were told to leave it out: those that
// begin with HELLO, and those that never do; and those that ask for INFO before they work.
var (
	saysHello   = map[string]bool{"rueidis": true, "lettuce": true, "valkey-glide": true}
	saysNoHello = map[string]bool{"redigo": true, "go-redis@8": true, "go-redis@7": true, "go-redis@6": true}
	asksInfo    = map[string]bool{"ioredis": true, "iovalkey": true, "stackexchange": true}
)

// beginsLike reports whether a library can have begun a connection like this; lines are those of a fix, by library.
func beginsLike(g *recording.HandshakeDetail, key string, lines map[string]string) bool {
	hello := slices.Contains(g.Ops, "HELLO") || strings.HasPrefix(g.Op, "HELLO")
	info := slices.Contains(g.Ops, "INFO") || g.Op == "INFO"
	always := saysHello[key] || key == "go-redis" && lines["go-redis@8"] != ""
	return (hello || !always) && !(hello && saysNoHello[key]) && info == asksInfo[key]
}

// greetings are those of the node's new connections.
func (n *Node) greetings() (out []*recording.HandshakeDetail) {
	for _, c := range n.Callers() {
		for _, k := range c.Conns {
			if k.Greeting != nil {
				out = append(out, k.Greeting)
			}
		}
	}
	return out
}

// libraries are those that the node's clients use, as far as anything tells: what their processes are built of or have
// open, what they call themselves, also to a server that does not know CLIENT SETINFO; else, what is installed for
// them.
func (n *Node) libraries() (out []recording.Library) {
	add := func(l recording.Library) {
		if !slices.ContainsFunc(out, func(o recording.Library) bool {
			return o.Name == l.Name &&
				(o.Version == l.Version || l.Version == "")
		}) {
			out = append(out, l)
		}
	}
	var installed []recording.Library
	for _, s := range n.Rec.Snapshots {
		var who struct{ Libraries []recording.Library }
		if s.Source != recording.SourceHost || s.Name != "process" || !strings.HasPrefix(s.Subject,
			recording.ProcessPrefix) || json.Unmarshal([]byte(s.Body), &who) != nil {
			continue
		}
		for _, l := range who.Libraries {
			if l.How == recording.LibraryInstalled {
				installed = append(installed, l)
			} else {
				add(l)
			}
		}
	}
	for _, c := range n.Clients() {
		if name := libraryOfClient(c); name != "" {
			add(recording.Library{Name: name, Version: c.LibVer})
		}
	}
	for _, g := range n.greetings() {
		if name := libraryNamed(g.Library); name != "" && !slices.ContainsFunc(out,
			func(o recording.Library) bool { return o.Name == name }) {
			add(recording.Library{Name: name, Version: number(g.Version)})
		}
	}
	for _, l := range installed {
		known := slices.ContainsFunc(out, func(o recording.Library) bool {
			return slices.ContainsFunc(installed, func(i recording.Library) bool { return i.Name == o.Name })
		})
		if !known { // what it calls itself says which of them it is
			add(l)
		}
	}
	return out
}

// runtimes are the libraries that the callers' programs can have, by their names; nil where one is no runtime's.
func (n *Node) runtimes() (names []string) {
	for _, c := range n.Callers() {
		before := len(names)
		for name, list := range ofRuntime {
			if strings.HasPrefix(c.Comm, name) {
				names = append(names, list...)
			}
		}
		if len(names) == before {
			return nil
		}
	}
	return names
}

// Library gives the lines of a fix for the libraries that are in use, in the order given; those of all where none is
// known, or none of them has a line. A key is the name of a library, or with a major version behind it, "go-redis@8",
// where that has options of its own; a name alone is of the versions that have none.
func (n *Node) Library(lines map[string]string, order ...string) (out []string) {
	used := n.libraries()
	for _, key := range order {
		name, major, _ := strings.Cut(key, "@")
		for _, l := range used {
			_, own := lines[name+"@"+majorOf(l.Version)]
			if l.Name == name && (major == majorOf(l.Version) && major != "" || major == "" && !own) {
				out = append(out, lines[key]+inUse(l))
				break
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	can, greetings := n.runtimes(), n.greetings()
	ofRuntime := func(key string) bool {
		name, _, _ := strings.Cut(key, "@")
		return can == nil || slices.Contains(can, name)
	}
	seen := func(key string) bool {
		return greetings == nil || slices.ContainsFunc(greetings,
			func(g *recording.HandshakeDetail) bool { return beginsLike(g, key, lines) })
	}
	for _, may := range []func(string) bool{
		func(key string) bool { return ofRuntime(key) && seen(key) },
		ofRuntime,
		func(string) bool { return true },
	} {
		for _, key := range order {
			if may(key) {
				out = append(out, lines[key])
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// inUse names the version that was found.
func inUse(l recording.Library) string {
	switch {
	case l.Version == "":
		return ""
	case l.How == recording.LibraryInstalled:
		return " (" + l.Name + " " + l.Version + " is installed here)"
	}
	return " (" + l.Name + " " + l.Version + " is in use here)"
}

// number is a version without what follows its numbers.
func number(version string) string {
	end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(version)
	}
	return strings.TrimRight(version[:end], ".")
}

// majorOf is the first number of a version; empty where there is none.
func majorOf(version string) string {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if _, err := strconv.Atoi(major); err != nil {
		return ""
	}
	return major
}

// UsesBelow reports whether a library is in use in a version below a major one.
func (n *Node) UsesBelow(name string, major int) (version string, ok bool) {
	for _, l := range n.libraries() {
		if m, err := strconv.Atoi(majorOf(l.Version)); l.Name == name && err == nil && m < major {
			return l.Version, true
		}
	}
	return "", false
}
