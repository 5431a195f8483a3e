package caller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
)

// Culprit is a process, or a host, whose behaviour has to change.
type Culprit struct {
	// Process is what it runs, with its number, "worker.py[812]"; or the host's address.
	Process string `json:"process"`
	// HostName is the name of that host; empty where it is not known.
	HostName string `json:"host_name,omitempty"`
	// PID is the id of the process; 0 where that is not on this host.
	PID int `json:"pid,omitempty"`
	// User, Unit, Container and Pod are for whom it runs, as in recording.Program.
	User      string `json:"user,omitempty"`
	Unit      string `json:"unit,omitempty"`
	Container string `json:"container,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Of Kubernetes; empty where they are not known.
	PodNamespace  string `json:"pod_namespace,omitempty"`
	PodName       string `json:"pod_name,omitempty"`
	ContainerName string `json:"container_name,omitempty"`
	Deployment    string `json:"deployment,omitempty"`
	// Address is that of one of its connections; ClientName, ACLUser, Library and DB are those of CLIENT LIST.
	Address    string `json:"address,omitempty"`
	ClientName string `json:"client_name,omitempty"`
	ACLUser    string `json:"acl_user,omitempty"`
	Library    string `json:"library,omitempty"`
	DB         int64  `json:"db,omitempty"`
	// What it does: "SET, GET", "97 connections".
	What string `json:"what"`
	// Text says all of that in words.
	Text string `json:"text"`
}

// Culprit is who does what a finding is about.
func (w Who) Culprit(what string) Culprit {
	return Culprit{
		Process: w.Name(), HostName: w.HostName, PID: w.PID, User: w.Program.User, Unit: w.Program.Unit,
		Container: w.Program.Container, Pod: w.Program.Pod, PodNamespace: w.Program.PodNamespace,
		PodName: w.Program.PodName, ContainerName: w.Program.ContainerName, Deployment: w.Program.Deployment,
		Address:    w.Address,
		ClientName: w.Client.Name, ACLUser: w.Client.User,
		Library: withVersion(w.Client.LibName, w.Client.LibVer), DB: w.Client.DB, What: what,
		Text: w.culpritText() + ": " + what,
	}
}

// Load is what a caller asks of a node.
type Load struct {
	Who
	// Calls are those that were followed.
	Calls int64
}

// Loads are who calls a node, by process and CLIENT SETNAME, those with most calls first. callers are those of whom it
// is asked; none: all.
func Loads(n *facts.Node, callers ...*Caller) (out []Load) {
	if len(callers) == 0 {
		callers = ClientCallers(n)
	}
	type key struct{ process, name string }
	at := map[key]int{}
	for _, c := range callers {
		for _, k := range c.Conns {
			w := WhoOf(n, k.Client, processOf(c), max(k.OpenNs, n.StartNs))
			of := key{w.Key(), w.Client.Name}
			i, known := at[of]
			if !known {
				i = len(out)
				at[of], out = i, append(out, Load{Who: w})
			}
			out[i].Calls += k.AppCalls()
		}
	}
	slices.SortStableFunc(out, func(a, b Load) int { return cmp.Compare(b.Calls, a.Calls) })
	return out
}

// processOf is a caller as the tap names processes; empty where it is a host.
func processOf(c *Caller) string {
	if c.PID == 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d]", c.Comm, c.PID)
}

// culpritText has the process first: its connection is one of several, and may be gone.
func (w Who) culpritText() string {
	text := w.CallerText()
	for _, part := range w.Client.details() {
		text += ", " + part
	}
	if w.PID == 0 && w.Address != "" && w.Address != text && !strings.HasPrefix(w.Address, "/") {
		text += ", at " + w.Address
	}
	return text
}

// JoinCulprits adds those that are not there yet.
func JoinCulprits(all, more []Culprit) []Culprit {
	for _, c := range more {
		if !slices.ContainsFunc(all, func(o Culprit) bool { return o.Process == c.Process && o.What == c.What }) {
			all = append(all, c)
		}
	}
	return all
}
