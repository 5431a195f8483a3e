package cause

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// refusal is an error by which a server says that it does not serve a call now, whatever the data.
type refusal struct {
	code  string
	title string
	// login: it is about who asks. Slowpath's own user may lack what the applications' users have.
	login bool
	// users: another cause has what clients are refused with it.
	users bool
	// elsewhere: another cause has all of it.
	elsewhere bool
	fix       func(*facts.Node) []remedy.Step
	see       string
}

// refusals are the errors of server.c (processCommand), cluster.c and acl.c that depend on the state of the server or
// on its configuration.
var refusals = []refusal{
	{
		code: "LOADING", title: "the server is loading its data", users: true, fix: fixLoading,
		see: operatePages + "management/persistence/",
	},
	{
		code: "CLUSTERDOWN", title: "the cluster is down, or has no node for these slots", fix: fixClusterDown,
		see: operatePages + "management/scaling/",
	},
	{
		code: "MASTERDOWN", title: "the replica has lost its master and may not serve old data", users: true,
		fix: fixMasterDown, see: operatePages + "management/replication/",
	},
	{
		code: "READONLY", title: "writes go to a replica", users: true, fix: fixReadOnly,
		see: operatePages + "management/replication/#read-only-replica",
	},
	{
		code: "OOM", title: "maxmemory is reached, and nothing may be evicted", fix: fixFull,
		see: "https://redis.io/docs/latest/develop/reference/eviction/",
	},
	{
		code: "MISCONF", title: "the last save to disk failed, so writes are refused", fix: fixFailedSave,
		see: operatePages + "management/persistence/",
	},
	{
		code: "BUSY", title: "a script runs for longer than busy-reply-threshold", fix: fixBusy,
		see: "https://redis.io/docs/latest/commands/script-kill/",
	},
	{code: "NOAUTH", title: "the server wants a login", login: true, fix: fixLogin, see: aclPage},
	{
		code: "WRONGPASS", title: "the password or the user of clients is wrong", login: true, fix: fixLogin,
		see: aclPage,
	},
	{code: "NOPERM", title: "the user of the clients may not do that", login: true, fix: fixRights, see: aclPage},
	{
		code: "DENIED", title: "the server is in protected mode", fix: fixProtected,
		see: operatePages + "management/security/",
	},
	{
		code: "CROSSSLOT", title: "the keys of a command belong to several slots", fix: fixCrossSlot,
		see: operatePages + "reference/cluster-spec/#hash-tags",
	},
	{code: "NOREPLICAS", elsewhere: true},
	// Redirects of a cluster: their clients follow them.
	{code: "MOVED", elsewhere: true},
	{code: "ASK", elsewhere: true},
	{code: "TRYAGAIN", elsewhere: true},
}

const (
	operatePages = "https://redis.io/docs/latest/operate/oss_and_stack/"
	aclPage      = operatePages + "management/security/acl/"
)

// refusalPages are the sources of all refusals.
func refusalPages() (pages []string) {
	for _, r := range refusals {
		if r.see != "" && !slices.Contains(pages, r.see) {
			pages = append(pages, r.see)
		}
	}
	return pages
}

// refusalOf is the row of an error.
func refusalOf(code string) (refusal, bool) {
	if i := slices.IndexFunc(refusals, func(r refusal) bool { return r.code == code }); i >= 0 {
		return refusals[i], true
	}
	return refusal{}, false
}

// loseRefused claims the time that callers lose by refused calls. How long a caller goes without a result nobody knows:
// as long as a slow call at least.
func (f *Finding) loseRefused(n *facts.Node, calls float64) {
	f.lose(n, facts.LostWaiting, calls*float64(n.NoticedNs()), facts.HealthyMaxNs)
}

// refusedSource is where it is known from how many calls of clients were refused.
func refusedSource(r nodes.RefusedCalls) (source, how string) {
	if r.Counted {
		return recording.SourceServer, "errorstat_" + r.Code + "; slowpath's own are not counted"
	}
	return recording.SourceTap, "seen in the clients' connections"
}

func fixLoading(*facts.Node) []remedy.Step {
	return []remedy.Step{
		remedy.ReadinessProbe,
		change("load-faster", "Let it load for less time: less data per server, an RDB in place of a long AOF "+
			"(BGREWRITEAOF before a planned restart). loading_eta_seconds in INFO says how long it still takes"),
	}
}

func fixMasterDown(n *facts.Node) []remedy.Step {
	return []remedy.Step{remedy.ServeStaleData(n), remedy.MendMasterLink}
}

func fixReadOnly(n *facts.Node) []remedy.Step { return []remedy.Step{remedy.WriteToMaster(n)} }

// fixClusterDown is for a cluster with slots that no node has, or with masters that do not answer.
func fixClusterDown(n *facts.Node) (fix []remedy.Step) {
	silent := nodes.SilentMasters(n)
	if len(silent) > 0 {
		fix = append(fix, change("start-masters", "Start the masters again that do not answer: %s. Or "+
			"promote their replicas: CLUSTER FAILOVER FORCE at the replica, TAKEOVER where no majority of masters is "+
			"left", strings.Join(silent[:min(len(silent), degree.Listed)], ", ")))
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
		fix = append(fix, remedy.ConfigSet(n, "more-memory", "maxmemory", fmt.Sprintf("%.0f", to),
			"Give it more memory").Risking("the host must have it, also for a child process that saves"))
	} else {
		fix = append(fix, change("more-memory", "Give it more memory (maxmemory), or move part of the data to "+
			"another server"))
	}
	evict := orElse(remedy.ConfigSet(n, "evict-keys", "maxmemory-policy", "allkeys-lru",
		"Where the data is a cache: let it evict keys").Risking("keys are lost"))
	return append(fix, evict, change("find-what-grew", "Find what grew: --bigkeys and --memkeys of redis-cli, "+
		"MEMORY STATS for buffers of clients"))
}

// fixFailedSave is for a server that refuses writes after a save that failed.
func fixFailedSave(n *facts.Node) []remedy.Step {
	return []remedy.Step{{
		ID: "mend-save", Kind: remedy.Change, Where: "the host of " + format.Name(n.Address),
		Text: "See why the save failed: its log, rdb_last_bgsave_status and aof_last_write_status in INFO; a full or " +
			"read-only disk, the owner of the directory, no memory for the fork (vm.overcommit_memory)",
	}, {
		ID: "save-again", Kind: remedy.Command, Text: "Then save: writes are accepted as soon as one save succeeds",
		Command: remedy.CLI(n, "BGSAVE"),
	}, orElse(remedy.ConfigSet(n, "write-without-save", "stop-writes-on-bgsave-error", "no",
		"Where the data may be lost: let it accept writes without saves").
		Risking("what is written since the last save is lost when the server ends"))}
}

// fixBusy is for a script that does not end.
func fixBusy(n *facts.Node) []remedy.Step {
	return []remedy.Step{
		{
			ID: "kill-script", Kind: remedy.Command, Command: remedy.CLI(n, "SCRIPT", "KILL"),
			Text: "End the script, unless it has written (FUNCTION KILL ends a function)",
			Risk: "its caller gets an error",
		},
		inApplication("split-script", "Split the script: the server serves nobody else while it runs"),
	}
}

// fixLogin is for clients with the wrong password, or none.
func fixLogin(n *facts.Node) []remedy.Step {
	const user = "<the user of your application>"
	fix := []remedy.Step{
		inApplication("give-password", "Give the clients the user and the password that the server has now "+
			"(requirepass, ACL LIST). ACL LOG names the user and the address of each failed login"),
	}
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
	look := change("see-acl-log", "ACL LOG names the user, the command and the key of each refused call. A key "+
		"pattern may be what the user lacks (~PATTERN)")
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
	return []remedy.Step{
		inApplication("set-password", "Set a password (requirepass), and give it to the clients"),
		orElse(remedy.ConfigSet(n, "leave-protected-mode", "protected-mode", "no",
			"Or, where a firewall keeps others out, let it answer without one; on the server's own host").
			Risking("whoever reaches its port has all data")),
	}
}

func fixCrossSlot(*facts.Node) []remedy.Step {
	return []remedy.Step{
		{
			ID: "keys-in-one-slot", Kind: remedy.Change, Restart: "the application",
			Text: "Give keys that are used together a hash tag: {user:17}:name and {user:17}:mail are in one slot",
			Risk: "a tag that too many keys share makes one node hot",
		},
		orElse(inApplication("one-key-each", "Split the command by slot in the client")),
	}
}
