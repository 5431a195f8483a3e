package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
)

// Kind is what a command that others waited for did for so long. Several kinds look alike from afar, a busy loop and a
// command in SLOWLOG; KindOf tells them apart in one place, so that no suspect is claimed by two causes.
type Kind int

// Kinds of commands that hold the event loop.
const (
	KindOther         Kind = iota // its work does not explain its duration, or it holds nobody up
	KindSlowCommand               // many elements
	KindFrameworkKeys             // keys that a framework keeps beside those of its users
	KindScriptOrMulti             // a script, or MULTI with many commands
	KindFlush                     // FLUSHALL, FLUSHDB
	KindFree                      // a big value was freed
	KindBulkTransfer              // a big value was read or written
	KindManyKeys                  // one command with many keys
	KindEviction                  // keys were evicted to stay below maxmemory
	KindFork                      // the fork of a snapshot or of a rewrite
	KindMigrate                   // MIGRATE or RESTORE of a key
	KindMapCommand                // CLUSTER NODES, SLOTS, SHARDS
	KindClientListing             // commands whose work grows with the number of clients
	KindIntrospection             // INFO, SLOWLOG, MONITOR and the like
	KindTLSHandshake              // handshakes, which the server does in its event loop
)

// KindOf tells the kind of a suspect that is a command.
func (n *Node) KindOf(s account.Suspect) Kind {
	if IsMigration(s) {
		return KindMigrate // also where it slept: it waits for the other server
	}
	if s.Kind != account.KindCommand || s.Stopped && !s.Busy {
		return KindOther // the time was not the command's: the thread was kept from running
	}
	if outer, ok := n.script(s); ok {
		return outer
	}
	name, _, _ := strings.Cut(s.Command, " ")
	switch {
	case n.isTLSHandshake(s):
		return KindTLSHandshake
	case n.FrameworkOf(s) != "":
		return KindFrameworkKeys
	case forkCommands[name], s.Command == "CONFIG SET" && n.forkedWithin(s):
		return KindFork
	case s.Command == "CONFIG SET" && n.GrowthAround("evicted_keys", s) > 0:
		return KindEviction // a lower maxmemory is reached at once
	case flushCommands[name]:
		return KindFlush
	case scriptCommands[name]:
		return KindScriptOrMulti
	case name == "EXEC":
		if inner, ok := n.longestWithin(s); ok {
			return n.KindOf(inner)
		}
		return KindScriptOrMulti
	case IsMapCommand(s.Command):
		return KindMapCommand // or moved-refresh-storm: they look at these themselves
	case n.GrowsWithClients(s.Command):
		return KindClientListing
	case account.Introspection(s.Command):
		return KindIntrospection
	case n.isBulk(s):
		return KindBulkTransfer
	case s.ArgCount > MinOversizedBatch && MultiKeyCommands[name]:
		return KindManyKeys
	case s.ArgCount >= manyArguments:
		return KindSlowCommand
	case n.isFree(name, s):
		return KindFree
	case account.ConstantTime(s.Command):
		return KindOther
	}
	return KindSlowCommand
}

// HeldBy claims what slow calls waited for commands of a cause.
func (n *Node) ClaimOfKind(kind Kind) SuspectClaim {
	return n.ClaimOfSuspects(func(s account.Suspect) bool { return n.KindOf(s) == kind })
}

var (
	flushCommands  = WordSet("FLUSHALL FLUSHDB")
	forkCommands   = WordSet("BGSAVE BGREWRITEAOF SYNC PSYNC")
	scriptCommands = WordSet("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO")
	// freeing are commands of constant time that drop a whole value, and take as long as it is big where it is freed at
	// once. GET and its like drop a key whose time has come.
	freeingCommands = WordSet(`DEL UNLINK GETDEL RENAME RENAMENX EXPIRE PEXPIRE EXPIREAT PEXPIREAT SET SETEX PSETEX GETSET GETEX MSET COPY RESTORE MOVE`)
	// returning are commands that send the values they find: bytes may be what takes the time, not the number of
	// elements.
	replyingCommands = WordSet(`GET GETRANGE SUBSTR GETSET GETDEL GETEX MGET HGET HMGET HGETALL HVALS LRANGE LINDEX LPOP RPOP SMEMBERS SRANDMEMBER SPOP ZRANGE
ZREVRANGE ZRANGEBYSCORE XRANGE XREVRANGE XREAD XREADGROUP DUMP SORT SORT_RO SUNION SINTER SDIFF EVAL`)
	// taking are commands whose arguments may be big.
	storingCommands = WordSet(`SET SETEX PSETEX SETNX GETSET MSET MSETNX APPEND SETRANGE HSET HMSET HSETNX LPUSH RPUSH LPUSHX RPUSHX SADD ZADD XADD RESTORE PUBLISH
SETBIT PFADD PFMERGE BITOP`)
)

const (
	manyArguments = 1000
	// A command that moves bytes at this rate spends its time on moving them: a copy into fresh memory runs at 1.3-10
	// GB/s, walking small elements at less than half of that (measured: GET of 10 MB 1.3 GB/s, HGETALL of 200 fields of
	// 100 kB 1.7 GB/s, SMEMBERS of 10^6 members 0.07 GB/s).
	bulkBytesPerNs = 1.0
	MinBulkBytes   = 1 << 20
	MinFreeBytes   = 1 << 20
)

// isBulk reports whether a command's time went into the bytes of its arguments or its reply.
func (n *Node) isBulk(s account.Suspect) bool {
	name, _, _ := strings.Cut(s.Command, " ")
	if s.ArgBytes >= MinBulkBytes && float64(s.ArgBytes) >= bulkBytesPerNs/10*float64(s.DurationNs) {
		return true
	}
	ns := float64(s.DurationNs) * float64(max(s.Count, 1))
	if all := n.usecNs(s); all > 0 {
		ns = max(ns, all)
	}
	need := bulkBytesPerNs
	if account.ConstantTime(s.Command) {
		need /= 10 // it has nothing else to do than to copy, however slowly
	}
	return replyingCommands[name] && n.GrowthAround("total_net_output_bytes", s) >= need*ns &&
		n.GrowthAround("total_net_output_bytes",
			s) >= MinBulkBytes ||
		storingCommands[name] && n.GrowthAround("total_net_input_bytes", s) >= need*ns &&
			n.GrowthAround("total_net_input_bytes",
				s) >= MinBulkBytes
}

// usecNs is the time that commandstats counted for the command around the suspect.
func (n *Node) usecNs(s account.Suspect) float64 {
	name := "cmdstat_" + strings.ToLower(strings.ReplaceAll(s.Command, " ", "|")) + ".usec"
	return n.GrowthAround(name, s) * 1000
}

// Rose is by how much a counter rose in the polls around a suspect.
func (n *Node) GrowthAround(field string, s account.Suspect) float64 {
	total := 0.0
	for _, st := range n.Info(field).Steps() {
		if st.ToNs > s.FromNs && st.FromNs < s.ToNs {
			total += st.Delta
		}
	}
	return total
}

// isFree reports whether a command of constant time was long because it freed something big.
func (n *Node) isFree(name string, s account.Suspect) bool {
	if !account.ConstantTime(s.Command) {
		return strings.HasSuffix(name, "STORE") && n.MemoryFall(s) >= MinFreeBytes &&
			n.MemoryFall(s) >= float64(s.DurationNs)/20
	}
	fell := n.MemoryFall(s) >= MinFreeBytes
	switch {
	case freeingCommands[name] && name != "SET" && name != "MSET":
		return s.Busy || fell || !n.HostWatched()
	case freeingCommands[name]:
		return fell || s.Busy && s.DurationNs >= account.SeenBusyNs
	default:
		return fell && n.GrowthAround("expired_keys", s) > 0
	}
}

// MemoryFell is the largest fall of used_memory between two polls around a suspect.
func (n *Node) MemoryFall(s account.Suspect) float64 {
	m := n.Info("used_memory")
	most := 0.0
	for i := 1; i < len(m); i++ {
		if m[i].TimeNs > s.FromNs && m[i-1].TimeNs < s.ToNs {
			most = max(most, m[i-1].Value-m[i].Value)
		}
	}
	return most
}

// script reports that a command ran inside of a script: the server counts and logs it beside the script.
func (n *Node) script(s account.Suspect) (Kind, bool) {
	name, _, _ := strings.Cut(s.Command, " ")
	if scriptCommands[name] || name == "EXEC" {
		return KindOther, false
	}
	for _, o := range n.Ledger.Suspects {
		outer, _, _ := strings.Cut(o.Command, " ")
		if o.Node == s.Node && scriptCommands[outer] && o.Holds(s) {
			return KindScriptOrMulti, true
		}
	}
	return KindOther, false
}

// longestWithin finds the command that was nearly all of an EXEC.
func (n *Node) longestWithin(exec account.Suspect) (account.Suspect, bool) {
	for _, s := range n.Ledger.Suspects {
		if s.Kind == account.KindCommand && s.Node == exec.Node && s.Command != "EXEC" && exec.Holds(s) {
			return s, true
		}
	}
	return account.Suspect{}, false
}

// forkedWithin reports that a command was nearly all of it a fork: CONFIG SET appendonly yes rewrites the file.
func (n *Node) forkedWithin(command account.Suspect) bool {
	for _, s := range n.Ledger.Suspects {
		if s.Kind == account.KindFork && s.Node == command.Node && command.Holds(s) {
			return true
		}
	}
	return false
}

// ClientsWith are the clients that match, each once.
func (n *Node) DistinctClients(match func(Client) bool) []Client {
	seen := map[string]bool{}
	var out []Client
	for _, c := range n.Clients() {
		if !seen[c.Addr] && match(c) {
			seen[c.Addr] = true
			out = append(out, c)
		}
	}
	return out
}

// Monitors are the clients that run MONITOR.
func (n *Node) Monitors() []Client {
	return n.DistinctClients(func(c Client) bool { return strings.Contains(c.Flags, "O") })
}

func WordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// IsMigration reports whether a command moves a value from server to server. RESTORE-ASKING is sent by MIGRATE alone,
// in a cluster; RESTORE by MIGRATE, and by programs that copy databases.
func IsMigration(s account.Suspect) bool {
	return s.Kind == account.KindCommand && (s.Command == "MIGRATE" || s.Command == "RESTORE-ASKING" ||
		s.Command == "RESTORE")
}

// IsServer knows servers by the names of their processes: "redis-server[12]", or "redis-server" alone.
func IsServerProcess(process string) bool {
	comm, _, _ := strings.Cut(process, "[")
	return strings.HasPrefix(comm, "redis-serv") || strings.HasPrefix(comm, "valkey-serv") || strings.HasPrefix(comm,
		"keydb-serv")
}

const (
	// Oversized is the number of commands, or keys, from which on a batch is one: 1000 take about a millisecond of the
	// loop, and a larger batch is hardly faster (redis.io, pipelining: "batches having each a reasonable number, for
	// instance 10k"; measured gains end near 100).
	MinOversizedBatch = 1000
)

// MultiKey are the commands that take any number of keys, members or fields, at a constant price each.
var MultiKeyCommands = WordSet(`MGET MSET MSETNX DEL UNLINK EXISTS TOUCH HMGET HSET HMSET HDEL SADD SREM SMISMEMBER ZADD ZREM ZMSCORE LPUSH RPUSH PFADD GEOADD XDEL`)
