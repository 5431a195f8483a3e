package cause

import (
	"maps"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// codisSlotMigrationStall: a proxy with slots of its own (Codis) migrates one key at a time. A call for a key that has
// not moved has it moved first; in the main threads of both servers that takes as long as the key is big.
var codisSlotMigrationStall = Cause{
	ID:      "codis-slot-migration-stall",
	Class:   ServerStall,
	Explain: explainSlotMigration,
}

func explainSlotMigration(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool { return nodes.MigratedByProxy(n, s) })
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	f.supportCommands(n, h.Suspects)
	f.supportWaits(n, h, worst.Command)
	f.supportSlotProxy(n)
	names := map[string]bool{}
	for _, s := range h.Suspects {
		names[s.Command] = true
	}
	commands := slices.Sorted(maps.Keys(names))
	f.supportMovedKeys(n, h, commands...)
	if !slices.ContainsFunc(commands, facts.IsSlotMigration) {
		f.doubt(recording.SourceServer, 0, "",
			"these are not the commands of Codis' own server (SLOTSMGRT…): another proxy, or an application, that "+
				"moves keys with MIGRATE")
	}
	if worst.Command == "RESTORE" || strings.HasPrefix(worst.Command, "SLOTSRESTORE") {
		f.doubtStalls(n, h) // the others may sleep: they wait for the other server
	}
	f.FixSteps = append([]remedy.Step{remedy.SplitBigKeys}, remedy.ProxySteps(remedy.MoveSlots)...)
	return f
}

// supportSlotProxy says who migrates: as seen on this server, else on the others that are watched.
func (f *Finding) supportSlotProxy(n *facts.Node) {
	seenOn := []*facts.Node{n}
	if len(nodes.SlotProxies(n)) == 0 {
		seenOn = n.Nodes
	}
	for _, o := range seenOn {
		for _, p := range nodes.SlotProxies(o) {
			to := o.Address
			if p.Calls > 0 {
				f.support(recording.SourceTap, float64(p.Calls), "calls",
					"%s sends MIGRATE to %s, and %s that move no keys: a proxy", p.Name, to, counted(p.Calls, "call"))
				continue
			}
			f.support(recording.SourceServer, 1, "connections",
				"MIGRATE came to %s on a connection that sends users' commands too (%s): a proxy", to, p.Name)
		}
	}
}
