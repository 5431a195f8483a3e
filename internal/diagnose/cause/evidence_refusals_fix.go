package cause

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording/series"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

func fixLoading(*facts.Node) []remedy.Step {
	return []remedy.Step{remedy.ReadinessProbe, {
		ID: "load-faster", Kind: remedy.Change,
		Text: "Let it load for less time: less data per server, an RDB in place of a long AOF (BGREWRITEAOF before a " +
			"planned restart). loading_eta_seconds in INFO says how long it still takes",
	}}
}

func fixMasterDown(n *facts.Node) []remedy.Step {
	return []remedy.Step{remedy.ServeStaleData(n), remedy.MendMasterLink}
}

func fixReadOnly(n *facts.Node) []remedy.Step { return []remedy.Step{remedy.WriteToMaster(n)} }

// fixClusterDown is for a cluster with slots that no node has, or with masters that do not answer.
func fixClusterDown(n *facts.Node) (fix []remedy.Step) {
	silent := nodes.SilentMasters(n)
	if len(silent) > 0 {
		fix = append(fix, remedy.Step{
			ID: "start-masters", Kind: remedy.Change,
			Text: fmt.Sprintf("Start the masters again that do not answer: %s. Or promote their replicas: CLUSTER "+
				"FAILOVER FORCE at the replica, TAKEOVER where no majority of masters is left",
				strings.Join(silent[:min(len(silent), 4)], ", ")),
		})
	}
	if len(silent) == 0 || nodes.UnassignedSlots(n) > 0 {
		fix = append(fix, remedy.Step{
			ID: "assign-slots", Kind: remedy.Command,
			Text:    "Give the slots without a node to the masters that are there; --cluster check lists them",
			Command: "echo yes | " + remedy.ClusterCLI(n, "fix"), // --cluster-yes does not answer its question
			Risk:    "what a node that is missing now has of these slots is not served when it comes back",
		})
	}
	return append(fix, remedy.ServePartly(n))
}

// fixFull is for a server whose memory is full.
func fixFull(n *facts.Node) (fix []remedy.Step) {
	used, _ := n.Series(series.UsedMemory).Max()
	host, _ := n.Series(series.TotalSystemMemory).Last()
	limit, _ := n.Config("maxmemory")
	now, _ := strconv.ParseFloat(limit, 64)
	if to := 2 * max(used, now); to > 0 && to < host {
		s := remedy.ConfigSet(n, "more-memory", "maxmemory", fmt.Sprintf("%.0f", to), "Give it more memory")
		s.Risk = "the host must have it, also for a child process that saves; " + s.Risk
		fix = append(fix, s)
	} else {
		fix = append(fix, remedy.Step{
			ID: "more-memory", Kind: remedy.Change,
			Text: "Give it more memory (maxmemory), or move part of the data to another server",
		})
	}
	evict := remedy.ConfigSet(n, "evict-keys", "maxmemory-policy", "allkeys-lru",
		"Where the data is a cache: let it evict keys")
	evict.Or, evict.Risk = true, "keys are lost; "+evict.Risk
	return append(fix, evict, remedy.Step{
		ID: "find-what-grew", Kind: remedy.Change,
		Text: "Find what grew: --bigkeys and --memkeys of redis-cli, MEMORY STATS for buffers of clients",
	})
}

// fixFailedSave is for a server that refuses writes after a save that failed.
func fixFailedSave(n *facts.Node) []remedy.Step {
	lose := remedy.ConfigSet(n, "write-without-save", "stop-writes-on-bgsave-error", "no",
		"Where the data may be lost: let it accept writes without saves")
	lose.Or, lose.Risk = true, "what is written since the last save is lost when the server ends; "+lose.Risk
	return []remedy.Step{{
		ID: "mend-save", Kind: remedy.Change, Where: "the host of " + format.Name(n.Address),
		Text: "See why the save failed: its log, rdb_last_bgsave_status and aof_last_write_status in INFO; a full or " +
			"read-only disk, the owner of the directory, no memory for the fork (vm.overcommit_memory)",
	}, {
		ID: "save-again", Kind: remedy.Command, Text: "Then save: writes are accepted as soon as one save succeeds",
		Command: remedy.CLI(n, "BGSAVE"),
	}, lose}
}

// fixBusy is for a script that does not end.
func fixBusy(n *facts.Node) []remedy.Step {
	return []remedy.Step{{
		ID: "kill-script", Kind: remedy.Command, Text: "End the script, unless it has written (FUNCTION KILL ends a " +
			"function)", Command: remedy.CLI(n, "SCRIPT", "KILL"), Risk: "its caller gets an error",
	}, {
		ID: "split-script", Kind: remedy.Change, Restart: "the application",
		Text: "Split the script: the server serves nobody else while it runs",
	}}
}

// fixLogin is for clients with the wrong password, or none.
func fixLogin(n *facts.Node) []remedy.Step {
	const user = "<the user of your application>"
	fix := []remedy.Step{{
		ID: "give-password", Kind: remedy.Change, Restart: "the application",
		Text: "Give the clients the user and the password that the server has now (requirepass, ACL LIST). ACL LOG " +
			"names the user and the address of each failed login",
	}}
	if !facts.ServerAtLeast(n, 6, 0) {
		return fix
	}
	change := remedy.CLI(n, "ACL", "SETUSER", user)
	return append(fix, remedy.Step{
		ID: "keep-old-password", Kind: remedy.Command, Or: true, Since: "Redis 6.0",
		Text:    "Where the password was changed: accept the old one, too, until all clients have the new one",
		Command: change + " '><the old password>'", Undo: change + " '<<the old password>'",
		Risk: "a restart forgets it, unless ACL SAVE or redis.conf keeps it",
	})
}

// fixRights gives the user of the clients the commands back that were refused.
func fixRights(n *facts.Node) []remedy.Step {
	look := remedy.Step{
		ID: "see-acl-log", Kind: remedy.Change,
		Text: "ACL LOG names the user, the command and the key of each refused call. A key pattern may be what the " +
			"user lacks (~PATTERN)",
	}
	ops := nodes.TapErrors(n)["NOPERM"]
	if len(ops) == 0 {
		ops = nodes.RefusedCommands(n)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range ops {
			if !yield(strings.ToLower(strings.ReplaceAll(name, " ", "|"))) {
				return
			}
		}
	})
	if len(names) == 0 {
		return []remedy.Step{look}
	}
	user, whose := caller.UserOf(n, account.Suspect{}), "the user of your application"
	if user == "" {
		user = "<" + whose + ">"
	} else {
		whose = "user " + format.Name(user)
	}
	grant, take := []string{"ACL", "SETUSER", user}, []string{"ACL", "SETUSER", user}
	for _, name := range names {
		grant, take = append(grant, "+"+name), append(take, "-"+name)
	}
	return []remedy.Step{{
		ID: "grant-command", Kind: remedy.Command, Text: "Let " + whose + " send what was refused",
		Command: remedy.CLI(n, grant...), Undo: remedy.CLI(n, take...), Since: "Redis 6.0",
		Risk: "whoever logs in as that user may; a restart forgets it, unless ACL SAVE or redis.conf keeps it",
	}, look}
}

// fixProtected is for a server in protected mode.
func fixProtected(n *facts.Node) []remedy.Step {
	open := remedy.ConfigSet(n, "leave-protected-mode", "protected-mode", "no",
		"Or, where a firewall keeps others out, let it answer without one; on the server's own host")
	open.Or, open.Risk = true, "whoever reaches its port has all data; "+open.Risk
	return []remedy.Step{{
		ID: "set-password", Kind: remedy.Change, Restart: "the application",
		Text: "Set a password (requirepass), and give it to the clients",
	}, open}
}

func fixCrossSlot(*facts.Node) []remedy.Step {
	return []remedy.Step{{
		ID: "keys-in-one-slot", Kind: remedy.Change, Restart: "the application",
		Text: "Give keys that are used together a hash tag: {user:17}:name and {user:17}:mail are in one slot",
		Risk: "a tag that too many keys share makes one node hot",
	}, {
		ID: "one-key-each", Kind: remedy.Change, Or: true, Restart: "the application",
		Text: "Split the command by slot in the client",
	}}
}
