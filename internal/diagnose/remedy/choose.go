package remedy

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Steps gives what the libraries that a node's clients use offer against a mechanism, or those of some callers, where
// it is about these. Where the libraries are not known, it gives what all possible ones offer.
func Steps(n *facts.Node, topic Topic, values Values, of ...*caller.Caller) (steps []Step) {
	for _, e := range Choose(n, table[topic], of...) {
		steps = append(steps, e.step(topic, values))
	}
	return steps
}

// Choose gives the rows for the libraries in use, else for all that could be: none where it is known which is used, and
// there is no row for it.
func Choose(n *facts.Node, rows []Row, of ...*caller.Caller) []Row {
	used, callers := caller.Libraries(n), caller.Callers(n)
	if len(of) > 0 {
		used, callers = nil, of
		for _, c := range of {
			used = append(used, caller.LibrariesOf(n, c)...)
		}
	}
	if out := inUse(used, rows); len(out) > 0 {
		return out
	}
	return possible(n, rows, callers)
}

// inUse are the rows for libraries that are in use. A row with a major version is for that version alone, one without
// a version for all that have no row of their own.
func inUse(used []recording.Library, rows []Row) (out []Row) {
	for _, e := range rows {
		for _, l := range used {
			major := caller.MajorVersion(l.Version)
			own := slices.ContainsFunc(rows, func(o Row) bool { return o.Library == l.Name && o.Version == major })
			if l.Name == e.Library && (e.Version == major && major != "" || e.Version == "" && (!own || major == "")) {
				e.Text += foundIn(l)
				out = append(out, e)
				break
			}
		}
	}
	return out
}

// foundIn names the version that was found.
func foundIn(l recording.Library) string {
	switch {
	case l.Version == "":
		return ""
	case l.How == recording.LibraryInstalled:
		return " (" + l.Name + " " + format.Name(l.Version) + " is installed here)"
	}
	return " (" + l.Name + " " + format.Name(l.Version) + " is in use here)"
}

// possible are the rows for the libraries that callers could use.
func possible(n *facts.Node, rows []Row, callers []*caller.Caller) (out []Row) {
	runtimes, handshakes := caller.PossibleLibraries(n, callers), caller.Handshakes(n)
	ofRuntime := func(e Row) bool { return runtimes == nil || slices.Contains(runtimes, e.Library) }
	seen := func(e Row) bool {
		return handshakes == nil || slices.ContainsFunc(handshakes,
			func(h *recording.HandshakeDetail) bool { return beginsLike(h, e, rows) })
	}
	for _, may := range []func(Row) bool{
		func(e Row) bool { return ofRuntime(e) && seen(e) },
		ofRuntime, // a step of another language is none
	} {
		for _, e := range rows {
			if may(e) {
				out = append(out, e)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(e Row) bool { return e.Library != anyLibrary })
}

// anyLibrary is the library of a row that is for those that have none of their own.
const anyLibrary = "other"

// For libraries without CLIENT SETINFO, because they are older or configured so: those that begin with HELLO, those
// that never do, and those that ask for INFO before their first command.
var (
	saysHello   = map[string]bool{"rueidis": true, "lettuce": true, "valkey-glide": true}
	saysNoHello = map[string]bool{"redigo": true, "go-redis@8": true, "go-redis@7": true, "go-redis@6": true}
	asksInfo    = map[string]bool{"ioredis": true, "iovalkey": true, "stackexchange": true}
)

// beginsLike reports whether the library of a row can have made this handshake. go-redis sends HELLO from version 9:
// its row without a version is for that one where older versions have their own.
func beginsLike(h *recording.HandshakeDetail, e Row, rows []Row) bool {
	hello := slices.Contains(h.Ops, "HELLO") || strings.HasPrefix(h.Op, "HELLO")
	info := slices.Contains(h.Ops, "INFO") || h.Op == "INFO"
	key := e.key()
	always := saysHello[key] || key == "go-redis" &&
		slices.ContainsFunc(rows, func(o Row) bool { return o.key() == "go-redis@8" })
	return (hello || !always) && !(hello && saysNoHello[key]) && info == asksInfo[key]
}
