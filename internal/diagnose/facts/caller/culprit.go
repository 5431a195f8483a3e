package caller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
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

// Tally adds up what each caller has of something: each process or host, by the names of its connections.
type Tally struct {
	// Others is what others have, of whom nothing is known.
	Others float64

	of    map[[2]string]*Part
	parts []*Part // in the order in which they came
}

// Part is what one caller has.
type Part struct {
	Who
	// Weight is how much it has, and Count how often something was added.
	Weight float64
	Count  int
	// Share is its part of all.
	Share float64
}

// Add adds to what a caller has.
func (t *Tally) Add(w Who, weight float64) {
	if t.of == nil {
		t.of = map[[2]string]*Part{}
	}
	key := [2]string{w.Key(), w.Client.Name}
	if w.Client.Addr == "" {
		key[1] = "\x00" // no connection is called so
	}
	p := t.of[key]
	if p == nil {
		p = &Part{Who: w}
		t.of[key], t.parts = p, append(t.parts, p)
	}
	p.Weight, p.Count = p.Weight+weight, p.Count+1
}

// Culprits are those who have at least a part of all, who has most first; what says what one does. Connections that
// CLIENT LIST did not have count as most of their process that it had.
func (t *Tally) Culprits(what func(Part) string) (out []Culprit) {
	byWeight := func(a, b *Part) int { return cmp.Compare(b.Weight, a.Weight) }
	slices.SortStableFunc(t.parts, byWeight)
	all := t.Others
	for _, p := range t.parts {
		all += p.Weight
	}
	known := slices.DeleteFunc(slices.Clone(t.parts), func(p *Part) bool {
		i := slices.IndexFunc(t.parts, func(o *Part) bool { return o.Key() == p.Key() && o.Client.Addr != "" })
		if p.Client.Addr != "" || i < 0 {
			return false
		}
		t.parts[i].Weight, t.parts[i].Count = t.parts[i].Weight+p.Weight, t.parts[i].Count+p.Count
		return true
	})
	slices.SortStableFunc(known, byWeight)
	t.parts = known
	for _, p := range known {
		if p.Share = p.Weight / max(all, 1); p.Weight > 0 && p.Share >= degree.Part {
			out = append(out, p.Culprit(what(*p)))
		}
	}
	return out
}

// TallyOf weighs the connections of some callers; none: all who call the node.
func TallyOf(n *facts.Node, weigh func(*Conn) int64, callers ...*Caller) (t Tally) {
	if len(callers) == 0 {
		callers = ClientCallers(n)
	}
	for _, c := range callers {
		for _, k := range c.Conns {
			t.Add(WhoOf(n, k.Client, processOf(c), max(k.OpenNs, n.StartNs)), float64(weigh(k)))
		}
	}
	return t
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
