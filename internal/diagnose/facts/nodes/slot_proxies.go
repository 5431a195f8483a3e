package nodes

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// SlotProxy is a program that moves keys between servers, and sends them the calls of users, too: a proxy that has
// slots of its own, and migrates them.
type SlotProxy struct {
	// Name is that of its process, as in "codis-proxy[12]"; else the address of its connection.
	Name string
	// Calls is the number of its calls that move no keys; 0 where only their connection is known.
	Calls int64
}

// MigratedByProxy reports whether a suspect moves a key for a proxy that migrates slots. It is not known of a RESTORE
// where no watched server was asked to MIGRATE by one.
func MigratedByProxy(n *facts.Node, s account.Suspect) bool {
	switch {
	case !facts.IsMigration(s):
		return false
	case facts.IsSlotMigration(s.Command):
		return true
	case s.Command == "MIGRATE" && s.Process != "" && s.Node == n.Address:
		for _, p := range SlotProxies(n) {
			if p.Name == s.Process {
				return true
			}
		}
		return false
	}
	for _, o := range n.Nodes {
		if len(SlotProxies(o)) > 0 {
			return !inCluster(n)
		}
	}
	return false
}

// SlotProxies are the proxies that were seen to send MIGRATE to the node, and calls of users. A node of a cluster has
// slots itself.
func SlotProxies(n *facts.Node) []SlotProxy { return facts.Once(n, "slot proxies", findSlotProxies) }

func findSlotProxies(n *facts.Node) (out []SlotProxy) {
	if inCluster(n) {
		return nil
	}
	seen := map[string]bool{} // senders
	for _, named := range []bool{true, false} {
		for _, s := range n.Ledger.Suspects {
			if s.Node != n.Address || s.Command != "MIGRATE" || (s.Process != "") != named {
				continue
			}
			p, ok := slotProxy(n, s)
			if ok && !seen[p.Name] {
				out = append(out, p)
			}
			seen[p.Name], seen[s.Client] = true, true
		}
	}
	return out
}

// slotProxy finds out whether the sender of a MIGRATE sends calls of users: most calls of its process, or any on the
// same connection.
func slotProxy(n *facts.Node, s account.Suspect) (SlotProxy, bool) {
	if s.Process != "" {
		moving := int64(0) // at most, if it sent all of them
		for command := range movingCommands {
			moving += int64(n.Growth(series.CommandCalls(series.InCommandstats(command))))
		}
		calls := caller.CallerByPID(n, hosts.PIDOf(s.Process)).AppCalls()
		return SlotProxy{Name: s.Process, Calls: calls - moving}, calls-moving > moving
	}
	if s.Client == "" {
		return SlotProxy{}, false
	}
	for _, call := range n.Rec.Calls {
		if call.Source == recording.SourceTap && call.Node == n.Address && call.Conn == s.Client && isUsers(call.Op) {
			return SlotProxy{Name: s.Client}, true
		}
	}
	for _, c := range caller.Clients(n) {
		if c.Addr == s.Client && isUsers(strings.ToUpper(c.Cmd)) {
			return SlotProxy{Name: s.Client}, true
		}
	}
	return SlotProxy{}, false
}

// isUsers reports whether a command is none of those that programs send which move keys.
func isUsers(command string) bool {
	name, _, _ := strings.Cut(strings.ReplaceAll(command, "|", " "), " ")
	return name != "" && name != "NULL" && name != "RESTORE" && !movingCommands[name] && !sessionCommands[name]
}

// inCluster reports whether the node says that it is one of a cluster.
func inCluster(n *facts.Node) bool { return facts.LastValue(n.Series(series.ClusterEnabled)) == 1 }

// movingCommands are those of programs that have keys move from server to server, and look for them before.
var movingCommands = facts.WordSet("MIGRATE DUMP SCAN KEYS TYPE TTL PTTL EXISTS DEL UNLINK OBJECT " +
	"MEMORY DBSIZE RANDOMKEY")

// sessionCommands are those that any program sends beside its work.
var sessionCommands = facts.WordSet("PING INFO AUTH HELLO SELECT CLIENT COMMAND CONFIG CLUSTER")
