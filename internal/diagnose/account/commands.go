package account

import "strings"

// constantTime lists commands whose own work does not grow with the data (command docs of redis.io, "Time complexity:
// O(1)"). When SLOWLOG shows one of them with milliseconds, the thread was not running, was freeing or copying
// something big, or waited for memory: the name of the command explains nothing.
var constantTime = set(`
GET SET SETNX SETEX PSETEX GETSET GETDEL GETEX APPEND STRLEN INCR DECR INCRBY DECRBY INCRBYFLOAT EXISTS TYPE
TTL PTTL EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME PERSIST RENAME RENAMENX DEL UNLINK MOVE
TOUCH HGET HSET HSETNX HMSET HMGET HEXISTS HLEN HINCRBY HINCRBYFLOAT HSTRLEN HDEL LPUSH RPUSH LPUSHX RPUSHX
LPOP RPOP LLEN BLPOP BRPOP RPOPLPUSH BRPOPLPUSH LMOVE BLMOVE SADD SISMEMBER SMISMEMBER SCARD SPOP SRANDMEMBER
SREM SMOVE ZADD ZSCORE ZMSCORE ZCARD ZINCRBY ZREM ZRANK ZREVRANK ZPOPMIN ZPOPMAX BZPOPMIN BZPOPMAX SETBIT
GETBIT XADD XLEN XACK PFADD GEOADD GEOPOS PING ECHO SELECT AUTH HELLO ASKING READONLY READWRITE REPLCONF MULTI
DISCARD WATCH UNWATCH PUBLISH SPUBLISH SUBSCRIBE UNSUBSCRIBE DBSIZE TIME XGROUP OBJECT MSET MGET MSETNX
GETRANGE SUBSTR SETRANGE BITFIELD BITFIELD_RO COPY RESTORE DUMP SHUTDOWN RESET`)

// ConstantTime reports whether a command, as in SLOWLOG in upper case, does a bounded amount of work of its own.
// Commands over several keys are among them where each key costs a constant: the arguments show how many there were.
func ConstantTime(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return constantTime[name]
}

// rareFree are commands of constant time that are rare compared with GET and SET, and take long where they free a big
// key.
var rareFree = set("DEL UNLINK GETDEL RENAME EXPIRE PEXPIRE EXPIREAT PEXPIREAT COPY RESTORE")

// readsOne are commands of constant time that only read: the server evicts nothing before them.
var readsOne = set("GET MGET HGET HMGET EXISTS TTL PTTL TYPE STRLEN HLEN LLEN SCARD ZCARD ZSCORE SISMEMBER PING")

// ownCalls are commands of slowpath that are no introspection: the server's end of its connections is not told apart in
// all recordings.
var ownCalls = map[string]bool{"PING": true, "CLUSTER INFO": true}

// introspection lists commands that ask about the server and not for data.
var introspection = set(`
INFO MONITOR SLOWLOG LATENCY COMMANDLOG MEMORY CONFIG COMMAND MODULE ACL PUBSUB XINFO OBJECT LOLWUT`)

// Introspection reports whether a command asks about the server and not for data. CLIENT LIST is one, CLIENT PAUSE is
// not, nor is CONFIG SET, which may have work to do.
func Introspection(command string) bool {
	name, sub, _ := strings.Cut(command, " ")
	switch name {
	case "CLIENT":
		return sub == "" || sub == "LIST" || sub == "INFO"
	case "CONFIG", "ACL", "MODULE":
		return sub == "" || sub == "GET" || sub == "LIST" || sub == "LOG"
	}
	return introspection[name]
}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

// sameCommand compares "CLUSTER NODES" of SLOWLOG with "CLUSTER" of commandstats before 7.0.
func sameCommand(logged, counted string) bool {
	return logged == counted || strings.HasPrefix(logged, counted+" ")
}

// sameOp compares commands of which either may lack its subcommand.
func sameOp(a, b string) bool { return sameCommand(a, b) || sameCommand(b, a) }

// sleeps reports whether a command keeps the event loop asleep, so that nobody sees it busy: DEBUG SLEEP.
func sleeps(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return name == "DEBUG"
}
