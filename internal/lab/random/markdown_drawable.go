package random

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/report/layout"
)

// topologies says what they are.
var topologies = map[scenario.Topology]string{
	scenario.Standalone: "one server",
	scenario.Replicated: "a master with one replica",
	scenario.Clustered:  "a cluster of three masters",
	scenario.Encrypted:  "one server with TLS",
	scenario.Proxied:    "one server behind a proxy that delays its replies by 0.2 to 3 ms",
	scenario.Namespaced: "one server in a network namespace",
	scenario.SlowDisk:   "one server with an append-only file on a disk that can be slow",
}

// drawable lists what a drawn scenario can have.
func (d *document) drawable() {
	d.title("## What can be drawn")
	d.blank()
	d.item("servers: %s", join(servers.Known()))
	var ways []string
	for _, t := range scenario.Topologies {
		ways = append(ways, fmt.Sprintf("%s (`%s`)", topologies[t], t))
	}
	d.item("topologies: %s", strings.Join(ways, "; "))
	d.item("callers by client libraries ([clients.md](clients.md)), one or two programs: %s",
		join(slices.DeleteFunc(clients.Known(), func(n clients.Name) bool {
			return !slices.ContainsFunc(servers.Known(), func(s servers.Name) bool {
				return fits(n, scenario.Standalone, s)
			})
		})))
	d.item("web applications ([apps.md](apps.md)), whose visitors are the callers: %s", join(sites))
	d.item("callers in the lab's own process, whose sockets matter: %s",
		join(scenario.OwnKinds))
	d.item("other callers on 2 to 10 connections, a process with 2 to 15 %% of a CPU, or writes to the disk, or none")
	d.item("none, one or two of %d faults, with a strength", len(scenario.Faults()))
	d.table("fault", "cause", "also called", "servers", "topologies", "callers", "strength, of 1000 draws")
	for _, f := range scenario.Faults() {
		callers := join(f.Needs.Callers)
		if strings.HasPrefix(callers, join(clients.Known())) {
			callers = "client libraries" + strings.TrimPrefix(callers, join(clients.Known()))
		}
		if f.Needs.With != "" {
			callers = "those of `" + f.Needs.With + "`, which is on, too"
		}
		d.row("`"+f.Name+"`", "`"+f.Cause+"`", join(f.Also), orAny(join(f.Needs.Servers)),
			orAny(join(f.Needs.Topologies)), orAny(callers),
			strengths(f))
	}
	d.undrawable()
}

// undrawable lists what no drawn scenario has.
func (d *document) undrawable() {
	d.title("## What cannot be drawn")
	var missing []string
	for _, c := range cause.Catalogue() {
		if !slices.ContainsFunc(scenario.Faults(), func(f scenario.Fault) bool {
			return f.Cause == c.ID || slices.Contains(f.Also, c.ID)
		}) {
			missing = append(missing, c.ID)
		}
	}
	slices.Sort(missing)
	d.blank()
	d.item("no fault has one of these %d of %d causes: %s", len(missing), len(cause.Catalogue()), join(missing))
	var others []apps.Name
	for _, a := range apps.Catalogue() {
		if !a.Web {
			others = append(others, a.Name)
		}
	}
	d.item("applications that are no web sites, whose operations are timed per second: %s", join(others))
	d.item("web applications with TLS, in a cluster, or with a server older than 6.0; faults of " +
		"their client libraries")
	d.item("a network between hosts: all runs on one machine, which servers, callers and slowpath share")
	d.item("faults that show less than once in 4 s, more than two at a time, loads of more than some thousand calls " +
		"per second")
}

func (d *document) blank() { d.line("") }

// item prints a line of a list, in as many lines as it takes.
func (d *document) item(format string, args ...any) {
	const width = 118
	text := layout.Fill(fmt.Sprintf(format, args...), width)
	d.line("- %s", strings.ReplaceAll(text, "\n", "\n  "))
}

func join[T ~string](names []T) string {
	if len(names) == 0 {
		return ""
	}
	text := make([]string, len(names))
	for i, n := range names {
		text[i] = string(n)
	}
	return "`" + strings.Join(text, "`, `") + "`"
}

func orAny(text string) string {
	if text == "" {
		return "any"
	}
	return text
}

// strengths are the ranges of what is drawn.
func strengths(f scenario.Fault) string {
	r := rand.New(rand.NewPCG(1, 1)) // any constant: the document is the same each time
	low, high := f.Draw(r), scenario.Strength{}
	var names []string
	for name, v := range low {
		high[name] = v
		names = append(names, name)
	}
	for range 999 {
		for name, v := range f.Draw(r) {
			low[name], high[name] = min(low[name], v), max(high[name], v)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %g–%g", name, low[name], high[name])
	}
	return strings.Join(names, ", ")
}
