package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/topology/cost"
)

// introduces reports whether a command is one by which connections introduce themselves.
func isHandshakeCommand(op string) bool {
	switch op {
	case "AUTH", "HELLO", "SELECT", "READONLY":
		return true
	}
	return strings.HasPrefix(op, "CLIENT ") || strings.HasPrefix(op, "COMMAND")
}

// DataCommand: not PING, not of a handshake, and not what slowpath and monitors ask.
func IsDataCommand(name string) bool {
	base, _, _ := strings.Cut(name, "|")
	switch base {
	case "ping", "auth", "hello", "select", "readonly", "client", "command", "info", "slowlog", "latency", "config",
		"cluster", "memory", "acl", "replconf", "psync", "role":
		return false
	}
	return true
}

// AboutCluster knows the commands by which clients learn of the cluster and of their connections.
func IsAdminCommand(op string) bool {
	name, _, _ := strings.Cut(op, " ")
	switch name {
	case "CLUSTER", "INFO", "PING", "HELLO", "AUTH", "CLIENT", "COMMAND", "CONFIG", "READONLY", "SELECT", "ROLE":
		return true
	}
	return false
}

// mapCommands are the commands that write the map, as commandstats, SLOWLOG and the kernel source have them.
var mapCommands = map[string]cost.Command{
	"CLUSTER NODES": cost.Nodes, "CLUSTER SLOTS": cost.Slots,
	"CLUSTER SHARDS": cost.Shards,
}

// IsMapCommand: of a server before 7.0 commandstats say CLUSTER of all subcommands.
func IsMapCommand(command string) bool {
	_, ok := mapCommands[command]
	return ok || command == "CLUSTER"
}

// mayBlock are the commands in which a client waits of its own will.
var blockingCommands = WordSet("BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT " +
	"WAITAOF")

// MeantToWait are commands whose reply may be long in coming on a server that is well.
var LongWaitCommands = WordSet("BLPOP BRPOP BLMOVE BRPOPLPUSH BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT " +
	"WAITAOF " +
	"SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR")

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

// MultiKey are the commands that take any number of keys, members or fields, at a constant price each.
var MultiKeyCommands = WordSet(`MGET MSET MSETNX DEL UNLINK EXISTS TOUCH HMGET HSET HMSET HDEL SADD SREM SMISMEMBER ZADD ZREM ZMSCORE LPUSH RPUSH PFADD GEOADD XDEL`)

// walking are commands that walk the keyspace, or a collection in which a framework keeps its keys.
var walkingCommands = WordSet("KEYS SCAN SMEMBERS HGETALL HKEYS HVALS LRANGE ZRANGE ZRANGEBYSCORE ZREVRANGE SUNION " +
	"SORT")

// IsMigration reports whether a command moves a value from server to server. RESTORE-ASKING is sent by MIGRATE alone,
// in a cluster; RESTORE by MIGRATE, and by programs that copy databases.
func IsMigration(s account.Suspect) bool {
	return s.Kind == account.KindCommand && (s.Command == "MIGRATE" || s.Command == "RESTORE-ASKING" ||
		s.Command == "RESTORE")
}
