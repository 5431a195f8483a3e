package cause

import (
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
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
	fix       []string
	see       []string
}

// refusals are the errors of server.c (processCommand), cluster.c and acl.c that depend on the state of the server or
// on its configuration.
var refusals = []refusal{
	{
		code: "LOADING", title: "the server is loading its data", users: true,
		fix: []string{
			"Wait until INFO says loading:0; loading_eta_seconds says how long",
			"Send callers to a node only when it has its data: a readiness probe that checks INFO, not PING alone",
			"Shorter: less data per server, an RDB in place of a long AOF (BGREWRITEAOF before a planned restart)",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"},
	},
	{
		code: "CLUSTERDOWN", title: "the cluster is down, or has no node for these slots",
		fix: []string{
			"redis-cli --cluster check HOST:PORT names the slots without a node",
			"Slots that no node has: redis-cli --cluster fix HOST:PORT (or CLUSTER ADDSLOTSRANGE on the right node)",
			"Masters that do not answer: start them again, or promote their replicas: CLUSTER FAILOVER FORCE at the " +
				"replica, TAKEOVER where no majority of masters is left",
			"CONFIG SET cluster-require-full-coverage no: the other masters go on serving their own slots meanwhile",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/scaling/"},
	},
	{
		code: "MASTERDOWN", title: "the replica has lost its master and may not serve old data", users: true,
		fix: []string{
			"Fix the link to the master: INFO replication of both",
			"CONFIG SET replica-serve-stale-data yes, if stale data is better than none",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/replication/"},
	},
	{
		code: "READONLY", title: "writes go to a replica", users: true,
		fix: []string{"Send writes to the master: master_host and master_port in INFO replication of this node"},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/replication/#read-only-replica"},
	},
	{
		code: "OOM", title: "maxmemory is reached, and nothing may be evicted",
		fix: []string{
			"CONFIG SET maxmemory BYTES: more, if the host has it (used_memory and maxmemory in INFO memory)",
			"CONFIG SET maxmemory-policy allkeys-lru, if the data is a cache; volatile-… needs keys with a TTL",
			"Find what grew: redis-cli --bigkeys, --memkeys; client buffers: MEMORY STATS clients.normal",
		},
		see: []string{"https://redis.io/docs/latest/develop/reference/eviction/"},
	},
	{
		code: "MISCONF", title: "the last save to disk failed, so writes are refused",
		fix: []string{
			"See why it failed: its log, rdb_last_bgsave_status and aof_last_write_status in INFO persistence; a " +
				"full or read-only disk (df -h DIR), the directory's owner, no memory for the fork " +
				"(vm.overcommit_memory=1)",
			"Then BGSAVE: writes are accepted as soon as one save succeeds",
			"CONFIG SET stop-writes-on-bgsave-error no, if the data may be lost",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"},
	},
	{
		code: "NOREPLICAS", title: "fewer replicas are in sync than min-replicas-to-write wants", elsewhere: true,
	},
	{
		code: "BUSY", title: "a script runs for longer than busy-reply-threshold",
		fix: []string{
			"SCRIPT KILL ends it, unless it has written; FUNCTION KILL for a function",
			"Split the script: the server serves nobody else while it runs",
		},
		see: []string{"https://redis.io/docs/latest/commands/script-kill/"},
	},
	{
		code: "NOAUTH", title: "the server wants a login", login: true,
		fix: []string{
			"Give the clients the password (requirepass) or the user (ACL LIST) that the server has now",
			"If the password was changed: keep the old one beside it until all clients have the new one: " +
				"ACL SETUSER NAME >NEW, later <OLD",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/"},
	},
	{
		code: "WRONGPASS", title: "the password or the user of clients is wrong", login: true,
		fix: []string{
			"ACL LOG names the user and the address of each failed login",
			"If the password was changed: keep the old one beside it until all clients have the new one: " +
				"ACL SETUSER NAME >NEW, later <OLD",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/"},
	},
	{
		code: "NOPERM", title: "the user of the clients may not do that", login: true,
		fix: []string{
			"ACL LOG names the user, the command and the key of each refused call",
			"Let the user have it: ACL SETUSER NAME +COMMAND ~PATTERN (ACL DRYRUN checks it, 7.0 and later)",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/"},
	},
	{
		code: "DENIED", title: "the server is in protected mode",
		fix: []string{"Set a password (requirepass) or bind addresses: then CONFIG SET protected-mode no"},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/management/security/"},
	},
	// Redirects of a cluster: their clients follow them.
	{code: "MOVED", title: "another node has the slot", elsewhere: true},
	{code: "ASK", title: "the slot moves", elsewhere: true},
	{code: "TRYAGAIN", title: "the slot moves", elsewhere: true},
	{
		code: "CROSSSLOT", title: "the keys of a command belong to several slots",
		fix: []string{
			"Give keys that are used together a hash tag: {user:17}:name and {user:17}:mail are in one slot",
			"Or split the command by slot in the client",
		},
		see: []string{"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags"},
	},
}

// refusalPages are the sources of all refusals.
func refusalPages() (pages []string) {
	for _, r := range refusals {
		for _, page := range r.see {
			if !slices.Contains(pages, page) {
				pages = append(pages, page)
			}
		}
	}
	return pages
}

// refusalOf is the row of an error.
func refusalOf(code string) (refusal, bool) {
	for _, r := range refusals {
		if r.code == code {
			return r, true
		}
	}
	return refusal{}, false
}

// loseRefused claims the time that callers lose by refused calls. How long a caller goes without a result nobody knows:
// as long as a slow call at least.
func (f *Finding) loseRefused(n *facts.Node, calls float64) {
	lost := calls * float64(n.NoticedNs())
	f.lose(n, facts.LostWaiting, lost)
	f.ExcessShare = max(f.ExcessShare, lost/(lost+float64(n.Ledger.ExcessNs)))
}

// refusedSource is where it is known from how many calls of clients were refused.
func refusedSource(r facts.RefusedCalls) (source, how string) {
	if r.Counted {
		return recording.SourceServer, "errorstat_" + r.Code + "; slowpath's own are not counted"
	}
	return recording.SourceTap, "seen in the clients' connections"
}
