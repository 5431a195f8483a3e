package mainthread

import (
	"strings"

	"slowpath/internal/recording/series"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// Kind is what a command that others waited for did for so long. Several kinds look alike, a busy event loop and a
// command in SLOWLOG; KindOf is the one place that distinguishes them, so that no suspect is claimed by two causes.
type Kind int

// Kinds of commands that hold the event loop.
const (
	// KindOther is none of the others: its work does not explain its duration, or it delays nobody.
	KindOther Kind = iota
	// KindSlowCommand works on many elements.
	KindSlowCommand
	// KindFrameworkKeys walks keys that a framework keeps in addition to those of its users.
	KindFrameworkKeys
	// KindScriptOrMulti is a script, or MULTI with many commands.
	KindScriptOrMulti
	// KindFlush is FLUSHALL or FLUSHDB.
	KindFlush
	// KindFree frees a big value.
	KindFree
	// KindBulkTransfer reads or writes a big value.
	KindBulkTransfer
	// KindManyKeys is one command with many keys.
	KindManyKeys
	// KindEviction evicts keys to stay below maxmemory.
	KindEviction
	// KindFork is the fork for a snapshot or for a rewrite.
	KindFork
	// kindMigrate is MIGRATE or RESTORE of a key.
	kindMigrate
	// kindMapCommand is CLUSTER NODES, SLOTS or SHARDS.
	kindMapCommand
	// kindClientListing is a command whose work grows with the number of clients.
	kindClientListing
	// KindIntrospection is INFO, SLOWLOG, MONITOR and the like.
	KindIntrospection
	// kindTLSHandshake is a TLS handshake, which the server does in its event loop.
	kindTLSHandshake
)

var (
	flushCommands  = facts.WordSet("FLUSHALL FLUSHDB")
	forkCommands   = facts.WordSet("BGSAVE BGREWRITEAOF SYNC PSYNC")
	scriptCommands = facts.WordSet("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO")
	// freeingCommands are commands of constant time that drop a whole value, and take long where a big one is freed at
	// once. GET and the like drop an expired key.
	freeingCommands = facts.WordSet(`
	DEL UNLINK GETDEL RENAME RENAMENX EXPIRE PEXPIRE EXPIREAT PEXPIREAT SET SETEX PSETEX GETSET GETEX
	MSET COPY RESTORE MOVE
`)
	// replyingCommands are commands that reply with the values they find: bytes may be what takes the time, not the
	// number of elements.
	replyingCommands = facts.WordSet(`
	GET GETRANGE SUBSTR GETSET GETDEL GETEX MGET HGET HMGET HGETALL HVALS LRANGE LINDEX LPOP RPOP
	SMEMBERS SRANDMEMBER SPOP ZRANGE ZREVRANGE ZRANGEBYSCORE XRANGE XREVRANGE XREAD XREADGROUP DUMP SORT
	SORT_RO SUNION SINTER SDIFF EVAL
`)
	// storingCommands are commands whose arguments may be big.
	storingCommands = facts.WordSet(`
	SET SETEX PSETEX SETNX GETSET MSET MSETNX APPEND SETRANGE HSET HMSET HSETNX LPUSH RPUSH LPUSHX
	RPUSHX SADD ZADD XADD RESTORE PUBLISH SETBIT PFADD PFMERGE BITOP
`)
)

// KindOf is the kind of a suspect that is a command.
func KindOf(n *facts.Node, s account.Suspect) Kind {
	kinds := facts.Once(n.Case, "kinds",
		func(*facts.Case) map[account.Suspect]Kind { return map[account.Suspect]Kind{} })
	kind, known := kinds[s]
	if !known {
		kind = findKind(n, s)
		kinds[s] = kind
	}
	return kind
}

func findKind(n *facts.Node, s account.Suspect) Kind {
	if facts.IsMigration(s) {
		return kindMigrate // also where it slept: it waits for the other server
	}
	if s.Kind != account.KindCommand || s.Stopped && !s.Busy {
		return KindOther // the thread was kept from running: the time was not the command's
	}
	if loopInstead(n, s) {
		return KindOther // it was what was read last before the event loop's own work
	}
	if inScript(n, s) {
		return KindScriptOrMulti
	}
	name, _, _ := strings.Cut(s.Command, " ")
	switch {
	case isTLSHandshake(n, s):
		return kindTLSHandshake
	case FrameworkOf(n, s) != "":
		return KindFrameworkKeys
	case forkCommands[name], s.Command == "CONFIG SET" && within(n, s, account.KindFork) != nil:
		return KindFork // CONFIG SET appendonly yes rewrites the file
	case s.Command == "CONFIG SET" && n.GrowthAround(series.EvictedKeys, s) > 0:
		return KindEviction // the server evicts until it is below the new maxmemory before it replies
	case flushCommands[name]:
		return KindFlush
	case scriptCommands[name]:
		return KindScriptOrMulti
	case name == "EXEC":
		if inner := within(n, s, account.KindCommand); inner != nil {
			return KindOf(n, *inner)
		}
		return KindScriptOrMulti
	case facts.IsMapCommand(s.Command):
		return kindMapCommand
	case GrowsWithClients(n, s.Command):
		return kindClientListing
	case account.Introspection(s.Command):
		return KindIntrospection
	case isBulk(n, s):
		return KindBulkTransfer
	case s.ArgCount > MinOversizedBatch && MultiKeyCommands[name]:
		return KindManyKeys
	case s.ArgCount >= MinOversizedBatch:
		return KindSlowCommand
	case isFree(n, name, s):
		return KindFree
	case account.ConstantTime(s.Command):
		return KindOther
	}
	return KindSlowCommand
}

// MultiKeyCommands are the commands that take any number of keys, members or fields, at a constant cost each.
var MultiKeyCommands = facts.WordSet(`
	MGET MSET MSETNX DEL UNLINK EXISTS TOUCH HMGET HSET HMSET HDEL SADD SREM SMISMEMBER ZADD ZREM
	ZMSCORE LPUSH RPUSH PFADD GEOADD XDEL
`)
