package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// CallerLibraries are the client libraries of the node's callers with their versions, as far as one is known: what the
// connections of a caller report of themselves; else what its process is built with or has open. One that has several,
// or none that is known, is not among them.
func (n *Node) CallerLibraries() map[*Caller]string {
	reported := map[string]string{} // by address
	for _, c := range n.Clients() {
		if name := libraryOfClient(c); name != "" {
			reported[c.Addr] = withVersion(name, c.LibVer)
		}
	}
	ofProcess := map[int][]string{}
	for _, p := range n.Processes {
		for _, l := range p.Libraries {
			if l.How != recording.LibraryInstalled {
				ofProcess[p.PID] = append(ofProcess[p.PID], withVersion(l.Name, l.Version))
			}
		}
	}
	out := map[*Caller]string{}
	for _, c := range n.Callers() {
		if name, one := onlyOne(reportedBy(c, reported)); one {
			out[c] = name
		} else if name, one := onlyOne(ofProcess[c.PID]); one && name != "" {
			out[c] = name
		}
	}
	return out
}

// reportedBy are the libraries that the connections of a caller report, to CLIENT LIST or in their handshakes.
func reportedBy(c *Caller, reported map[string]string) (names []string) {
	for _, k := range c.Conns {
		if name := reported[k.Client]; name != "" {
			names = append(names, name)
		} else if k.Handshake != nil {
			if name := libraryNamed(k.Handshake.Library); name != "" {
				names = append(names, withVersion(name, number(k.Handshake.Version)))
			}
		}
	}
	return names
}

// onlyOne is the name that all of a list have.
func onlyOne(names []string) (name string, one bool) {
	for _, name := range names {
		if name != names[0] {
			return "", false
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}

func withVersion(name, version string) string { return strings.TrimSpace(name + " " + version) }
