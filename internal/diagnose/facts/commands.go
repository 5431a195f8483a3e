package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/topology/cost"
)

// IsDataCommand reports whether a command, as commandstats names it, is none of PING, of a handshake, and of what
// slowpath and monitoring tools ask.
func IsDataCommand(name string) bool {
	base, _, _ := strings.Cut(name, "|")
	switch base {
	case "ping", "auth", "hello", "select", "readonly", "client", "command", "info", "slowlog", "latency", "config",
		"cluster", "memory", "acl", "replconf", "psync", "role":
		return false
	}
	return true
}

// IsAdminCommand reports whether a command is about the cluster, the server or the connection. Clients send such
// commands to all nodes.
func IsAdminCommand(op string) bool {
	name, _, _ := strings.Cut(op, " ")
	switch name {
	case "CLUSTER", "INFO", "PING", "HELLO", "AUTH", "CLIENT", "COMMAND", "CONFIG", "READONLY", "SELECT", "ROLE":
		return true
	}
	return false
}

// mapCommands are the commands that reply with the cluster map, as SLOWLOG and the tap name them.
var mapCommands = map[string]cost.Command{
	"CLUSTER NODES": cost.Nodes, "CLUSTER SLOTS": cost.Slots,
	"CLUSTER SHARDS": cost.Shards,
}

// IsMapCommand reports whether a command replies with the cluster map. Commandstats of a server before 7.0 say CLUSTER
// of all subcommands.
func IsMapCommand(command string) bool {
	_, ok := mapCommands[command]
	return ok || command == "CLUSTER"
}

// blockingCommands are the commands that wait by design.
var blockingCommands = WordSet(strings.Join(recording.BlockingCommands(), " "))

// LongWaitCommands are the commands whose reply, or next message, may take long on a healthy server.
var LongWaitCommands = WordSet(strings.Join(recording.BlockingCommands(), " ") +
	" SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR")

var (
	flushCommands  = WordSet("FLUSHALL FLUSHDB")
	forkCommands   = WordSet("BGSAVE BGREWRITEAOF SYNC PSYNC")
	scriptCommands = WordSet("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO")
	// freeingCommands are commands of constant time that drop a whole value, and take long where a big one is freed at
	// once. GET and the like drop an expired key.
	freeingCommands = WordSet(`
	DEL UNLINK GETDEL RENAME RENAMENX EXPIRE PEXPIRE EXPIREAT PEXPIREAT SET SETEX PSETEX GETSET GETEX
	MSET COPY RESTORE MOVE
`)
	// replyingCommands are commands that reply with the values they find: bytes may be what takes the time, not the
	// number of elements.
	replyingCommands = WordSet(`
	GET GETRANGE SUBSTR GETSET GETDEL GETEX MGET HGET HMGET HGETALL HVALS LRANGE LINDEX LPOP RPOP
	SMEMBERS SRANDMEMBER SPOP ZRANGE ZREVRANGE ZRANGEBYSCORE XRANGE XREVRANGE XREAD XREADGROUP DUMP SORT
	SORT_RO SUNION SINTER SDIFF EVAL
`)
	// storingCommands are commands whose arguments may be big.
	storingCommands = WordSet(`
	SET SETEX PSETEX SETNX GETSET MSET MSETNX APPEND SETRANGE HSET HMSET HSETNX LPUSH RPUSH LPUSHX
	RPUSHX SADD ZADD XADD RESTORE PUBLISH SETBIT PFADD PFMERGE BITOP
`)
)

// MultiKeyCommands are the commands that take any number of keys, members or fields, at a constant cost each.
var MultiKeyCommands = WordSet(`
	MGET MSET MSETNX DEL UNLINK EXISTS TOUCH HMGET HSET HMSET HDEL SADD SREM SMISMEMBER ZADD ZREM
	ZMSCORE LPUSH RPUSH PFADD GEOADD XDEL
`)

// movingCommands are those of programs that have keys move from server to server, and look for them before.
var movingCommands = WordSet("MIGRATE DUMP SCAN KEYS TYPE TTL PTTL EXISTS DEL UNLINK OBJECT MEMORY DBSIZE RANDOMKEY")

// sessionCommands are those that any program sends beside its work.
var sessionCommands = WordSet("PING INFO AUTH HELLO SELECT CLIENT COMMAND CONFIG CLUSTER")

// walkingCommands are the commands that walk the keyspace, or a collection in which a framework keeps its keys.
var walkingCommands = WordSet("KEYS SCAN SMEMBERS HGETALL HKEYS HVALS LRANGE ZRANGE ZRANGEBYSCORE ZREVRANGE SUNION " +
	"SORT")

// IsMigration reports whether a suspect is a command that moves a value from server to server. RESTORE-ASKING is sent
// by MIGRATE alone, in a cluster; RESTORE by MIGRATE, and by programs that copy databases; those of IsSlotMigration by
// Codis.
func IsMigration(s account.Suspect) bool {
	return s.Kind == account.KindCommand && (s.Command == "MIGRATE" || s.Command == "RESTORE-ASKING" ||
		s.Command == "RESTORE" || IsSlotMigration(s.Command))
}
