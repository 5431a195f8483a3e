package cause

import (
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
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
