package caller

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// CallerLibraries are the client libraries of the node's callers with their versions, as far as one is known for
// certain. One that has several is not among them.
func CallerLibraries(n *facts.Node) map[*Caller]string {
	out := map[*Caller]string{}
	for _, c := range Callers(n) {
		if l := LibrariesOf(n, c); len(l) == 1 && l[0].How != recording.LibraryInstalled {
			out[c] = withVersion(l[0].Name, l[0].Version)
		}
	}
	return out
}

func withVersion(name, version string) string { return strings.TrimSpace(name + " " + version) }

// LibrariesOf are the client libraries of a caller: the one that its connections report of themselves; else those that
// its process is built with or has open; else those that are installed for it.
func LibrariesOf(n *facts.Node, c *Caller) []recording.Library {
	reported := reportedBy(n, c)
	if len(reported) == 1 {
		return reported
	}
	var has, installed []recording.Library
	for _, p := range hosts.Processes(n.Case) {
		for _, l := range p.Libraries {
			switch {
			case p.PID != c.PID || c.PID == 0:
			case l.How == recording.LibraryInstalled:
				installed = withLibrary(installed, l)
			default:
				has = withLibrary(has, l)
			}
		}
	}
	for _, known := range [][]recording.Library{has, reported} {
		if len(known) > 0 {
			return known
		}
	}
	return installed
}

// reportedLibraries are those that connections report to CLIENT LIST, by their addresses.
func reportedLibraries(n *facts.Node) map[string]recording.Library {
	return facts.Once(n, "libraries in CLIENT LIST", func(n *facts.Node) map[string]recording.Library {
		out := map[string]recording.Library{}
		for _, c := range Clients(n) {
			if name := LibraryOfClient(c); name != "" {
				out[c.Addr] = recording.Library{Name: name, Version: c.LibVer}
			}
		}
		return out
	})
}

// reportedBy are the libraries that the connections of a caller report, to CLIENT LIST or in their handshakes.
func reportedBy(n *facts.Node, c *Caller) (out []recording.Library) {
	for _, k := range c.Conns {
		if l, ok := reportedLibraries(n)[k.Client]; ok {
			out = withLibrary(out, l)
		} else if k.Handshake != nil {
			if name := libraryNamed(k.Handshake.Library); name != "" {
				out = withLibrary(out, recording.Library{Name: name, Version: number(k.Handshake.Version)})
			}
		}
	}
	return out
}

// withLibrary adds a library that is not there yet.
func withLibrary(to []recording.Library, l recording.Library) []recording.Library {
	if slices.Contains(to, l) {
		return to
	}
	return append(to, l)
}
