package caller

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// Who is whoever has the client's end of a connection, as far as it is known.
type Who struct {
	// Address is that of the client's end, "10.0.0.7:40312"; empty where only its process is known.
	Address string
	// HostName is the name of that host; empty where it is not known, and where PID is not 0.
	HostName string
	// PID is the id of its process; 0 where that is not on this host, or not known.
	PID int
	// Process is the process as "worker.py[812]"; empty where PID is 0.
	Process string
	// Program is what the process runs, and for whom; empty where that was not read.
	Program recording.Program
	// Client is its line of CLIENT LIST; the zero one where it has none.
	Client Client
}

// WhoOf finds who called from an address at a time. process is the process as the tap named it, empty where it did not.
func WhoOf(n *facts.Node, address, process string, at int64) Who {
	w := Who{Address: address, PID: hosts.PIDOf(process), Process: process, Client: listedAs(n, address, at)}
	if w.PID == 0 {
		if e, ok := endAt(n, address, at); ok {
			w.PID, w.Process = e.pid, hosts.ProcessName(n.Case, e.pid, e.comm)
		}
	}
	if w.PID == 0 {
		w.HostName = HostNames(n.Case)[HostOf(address)]
	} else {
		w.Program = hosts.Programs(n.Case)[w.PID]
		w.Process = hosts.ProcessName(n.Case, w.PID, strings.TrimSuffix(w.Process, fmt.Sprintf("[%d]", w.PID)))
	}
	return w
}

// listedAs is the last line of CLIENT LIST with an address, of one over a Unix socket at a time; the zero one where
// there is none.
func listedAs(n *facts.Node, address string, at int64) Client {
	if c, ok := unixClientAt(n, address, at); ok && !c.Self {
		return c.Client
	}
	return facts.Once(n, "lines of CLIENT LIST", func(n *facts.Node) map[string]Client {
		out := map[string]Client{}
		for _, c := range Clients(n) {
			if !c.OverUnix() {
				out[c.Addr] = c
			}
		}
		delete(out, "")
		return out
	})[address]
}

// Known reports whether anything is.
func (w Who) Known() bool { return w.Address != "" || w.PID != 0 }

// Key is the same for all connections of a process, or of a host where no process is known.
func (w Who) Key() string {
	if w.PID != 0 {
		return strconv.Itoa(w.PID)
	}
	return HostOf(w.Address)
}

// Name is the process, or the host where no process is known: "worker.py[812]", "10.0.0.7"; over a Unix socket "clients
// over /run/redis.sock".
func (w Who) Name() string {
	host := HostOf(w.Address)
	if strings.HasPrefix(host, "/") {
		host = "clients over " + host
	}
	return cmp.Or(w.Process, host)
}

// Text is all that is known, for a message: "127.0.0.1:40312 (worker.py[812] run by app in shop.service, redis-py
// 5.0.1, name shop, db 3)".
func (w Who) Text() string {
	text := w.Client.details()
	if owner := cmp.Or(w.ownerText(), w.HostName); owner != "" {
		text = append([]string{owner}, text...)
	}
	switch {
	case w.Address == "":
		return strings.Join(text, ", ")
	case len(text) == 0:
		return w.Address
	}
	return w.Address + " (" + strings.Join(text, ", ") + ")"
}

// CallerText is Name with what is known of its owner, for a message about several connections of it: "worker.py[812]
// run by app", "10.0.0.7 (app-3)".
func (w Who) CallerText() string { return cmp.Or(w.ownerText(), HostText(w.Name(), w.HostName)) }

// HostText is an address with its name, where it has one.
func HostText(address, name string) string {
	if name == "" {
		return address
	}
	return address + " (" + name + ")"
}

// ownerText is the process, and for whom it runs.
func (w Who) ownerText() string {
	text := w.Process
	if w.Program.User != "" {
		text += " run by " + w.Program.User
	}
	p := w.Program
	container := shortID(p.Container)
	if p.PodName != "" { // an id tells people less than the name of the pod
		container = ""
	}
	for _, in := range []struct{ of, prefix string }{
		{p.Unit, ""},
		{container, "container "},
		{recording.PodText(p.Pod, p.PodNamespace, p.PodName, p.ContainerName), ""},
	} {
		if in.of != "" {
			text += " in " + in.prefix + in.of
		}
	}
	return text
}

// shortID is the id of a container as container engines show it.
func shortID(id string) string { return id[:min(len(id), 12)] }

// HostTextOf is the host of an address with its name, where it has one: "10.0.0.7 (app-3)".
func HostTextOf(c *facts.Case, address string) string {
	host := HostOf(address)
	return HostText(host, HostNames(c)[host])
}

// HostNames are the names of other hosts that call, by their address.
func HostNames(c *facts.Case) map[string]string {
	return facts.Once(c, "names of hosts", func(c *facts.Case) map[string]string {
		out := map[string]string{}
		for s, h := range facts.Bodies[recording.HostName](c.Rec, "", recording.SnapshotHostName,
			recording.HostPrefix) {
			out[s.Subject] = h.Name
		}
		return out
	})
}

// connOwner is a process that had the client's end of an address from a time to another; 0: for ever.
type connOwner struct {
	fromNs, toNs int64
	pid          int
	comm         string
}

// endAt is who had the client's end of an address at a time; of several the last.
func endAt(n *facts.Node, address string, at int64) (owner connOwner, ok bool) {
	for _, o := range owners(n)[address] {
		if o.fromNs <= at && (o.toNs == 0 || at <= o.toNs) {
			owner, ok = o, true
		}
	}
	return owner, ok
}

// owners are the processes that had the clients' ends of connections, by address.
func owners(n *facts.Node) map[string][]connOwner {
	return facts.Once(n, "owners of connections", func(n *facts.Node) map[string][]connOwner {
		out := map[string][]connOwner{}
		for _, c := range callerTableOf(n).ends {
			if c.pid != 0 {
				out[c.Client] = append(out[c.Client], connOwner{c.OpenNs, c.CloseNs, c.pid, c.comm})
			}
		}
		ownersByHost(n, out)
		for address, list := range out {
			out[address] = slices.SortedStableFunc(slices.Values(list), func(a, b connOwner) int {
				return cmp.Compare(a.fromNs, b.fromNs)
			})
		}
		return out
	})
}

// ownersByHost adds what the host source saw: also of connections on which nothing was sent. The first process of an
// address may have had it before the watch.
func ownersByHost(n *facts.Node, out map[string][]connOwner) {
	for s, ends := range facts.Bodies[recording.ConnEnds](n.Rec, recording.SourceHost, recording.SnapshotEnds,
		recording.ConnPrefix) {
		if ends.Node != n.Address || ends.PID == 0 {
			continue
		}
		address, owner := s.Subject, connOwner{fromNs: s.TimeNs, pid: ends.PID, comm: ends.Comm}
		if _, err := netip.ParseAddrPort(address); err != nil {
			c, ok := unixClientAt(n, address, s.TimeNs)
			if !ok {
				continue
			}
			owner.fromNs, owner.toNs = c.FromNs, c.ToNs
		} else if len(out[address]) == 0 {
			owner.fromNs = 0
		}
		out[address] = append(out[address], owner)
	}
}
