package workload

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// command describes a command of Redis or Valkey.
type command struct {
	// positions of its keys as in the reply to COMMAND; a negative last counts from the end; first 0: no key
	first, last, step int
	kind              kind   // of the value at its keys; anyKind where it takes any
	keys              finder // instead of positions that depend on the arguments
}

// kind is the type of the value that a key holds.
type kind uint8

const (
	anyKind kind = iota
	stringKind
	listKind
	hashKind
	setKind
	zsetKind
	streamKind
)

var kindNames = [...]string{"any type", "string", "list", "hash", "set", "sorted set", "stream"}

func (k kind) String() string { return kindNames[k] }

// finder gives the positions of the keys in a command with its arguments: nil where they are not known, empty without
// keys.
type finder func(args []string) []int

// CommandNames are those of the commands whose keys are known, in alphabetical order.
func CommandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// commands are those whose keys are known, from COMMAND of redis 8.0.2 and valkey 8.1.1, to which a test compares it,
// and from the documentation of modules.
var commands = func() map[string]command {
	table := map[string]command{}
	add := func(c command, names string) {
		for name := range strings.FieldsSeq(names) {
			table[name] = c
		}
	}
	one, pair, all := command{first: 1, last: 1, step: 1}, command{first: 1, last: 2, step: 1},
		command{first: 1, last: -1, step: 1}
	of := func(c command, k kind) command { c.kind = k; return c }
	with := func(k kind, f finder) command { return command{first: 1, last: 1, step: 1, kind: k, keys: f} }

	add(command{}, "PING ECHO TIME DBSIZE LASTSAVE LOLWUT COMMAND INFO ROLE WAIT WAITAOF MULTI EXEC DISCARD UNWATCH "+
		"RANDOMKEY SCAN PUBSUB LATENCY SLOWLOG")
	add(one, `DUMP TYPE TTL PTTL EXPIRETIME PEXPIRETIME EXPIRE EXPIREAT PEXPIRE PEXPIREAT PERSIST RESTORE MOVE`)
	add(with(anyKind, sortKeys), "SORT SORT_RO")
	add(pair, "RENAME RENAMENX COPY")
	add(all, "DEL UNLINK EXISTS TOUCH WATCH")
	add(with(anyKind, subcommandKey("ENCODING", "FREQ", "IDLETIME", "REFCOUNT")), "OBJECT")
	add(with(anyKind, subcommandKey("USAGE")), "MEMORY")

	add(of(one, stringKind),
		`
	GET SET SETEX PSETEX SETNX GETSET GETDEL GETEX APPEND STRLEN SUBSTR GETRANGE SETRANGE INCR DECR INCRBY
	DECRBY INCRBYFLOAT GETBIT SETBIT BITCOUNT BITPOS BITFIELD BITFIELD_RO PFADD`)
	add(of(pair, stringKind), "LCS")
	add(of(all, stringKind), "MGET PFCOUNT PFMERGE")
	add(command{first: 1, last: -1, step: 2, kind: stringKind}, "MSET MSETNX")
	add(command{first: 2, last: -1, step: 1, kind: stringKind}, "BITOP")

	add(of(one, listKind), "LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LINDEX LRANGE LTRIM LSET LREM LINSERT LPOS")
	add(of(pair, listKind), "RPOPLPUSH LMOVE BLMOVE BRPOPLPUSH")
	add(command{first: 1, last: -2, step: 1, kind: listKind}, "BLPOP BRPOP")
	add(with(listKind, counted(1)), "LMPOP")
	add(with(listKind, counted(2)), "BLMPOP")

	add(of(one, hashKind),
		`
	HSET HMSET HSETNX HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HDEL HINCRBY HINCRBYFLOAT HSCAN
	HRANDFIELD HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HTTL HPTTL HEXPIRETIME HPEXPIRETIME HPERSIST HGETDEL
	HGETEX HSETEX`)

	add(of(one, setKind), "SADD SREM SPOP SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER SSCAN")
	add(of(pair, setKind), "SMOVE")
	add(of(all, setKind), "SDIFF SINTER SUNION SDIFFSTORE SINTERSTORE SUNIONSTORE")
	add(with(setKind, counted(1)), "SINTERCARD")

	add(of(one, zsetKind),
		`
	ZADD ZINCRBY ZREM ZSCORE ZMSCORE ZRANK ZREVRANK ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE
	ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZPOPMIN ZPOPMAX ZRANDMEMBER ZSCAN ZREMRANGEBYRANK
	ZREMRANGEBYSCORE ZREMRANGEBYLEX GEOADD GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO
	GEORADIUSBYMEMBER_RO`)
	add(of(pair, zsetKind), "ZRANGESTORE GEOSEARCHSTORE")
	add(command{first: 1, last: -2, step: 1, kind: zsetKind}, "BZPOPMIN BZPOPMAX")
	add(with(anyKind, counted(1)), "ZDIFF ZINTER ZUNION ZINTERCARD")
	add(with(anyKind, destination), "ZDIFFSTORE ZINTERSTORE ZUNIONSTORE")
	add(with(zsetKind, counted(1)), "ZMPOP")
	add(with(zsetKind, counted(2)), "BZMPOP")
	add(with(zsetKind, sortKeys), "GEORADIUS GEORADIUSBYMEMBER")

	add(of(one, streamKind), "XADD XLEN XRANGE XREVRANGE XDEL XTRIM XACK XCLAIM XAUTOCLAIM XPENDING XSETID")
	add(with(streamKind, streamKeys), "XREAD XREADGROUP")
	add(with(streamKind, subcommandKey("STREAM", "GROUPS", "CONSUMERS")), "XINFO")
	add(with(streamKind, subcommandKey("CREATE", "SETID", "DESTROY", "CREATECONSUMER", "DELCONSUMER")), "XGROUP")

	add(with(anyKind, counted(2)), "EVAL EVAL_RO EVALSHA EVALSHA_RO FCALL FCALL_RO")
	add(one, "PUBLISH SPUBLISH") // a channel has the prefix as a key has
	add(one, `
	JSON.SET JSON.GET JSON.DEL JSON.TYPE JSON.NUMINCRBY JSON.STRAPPEND JSON.STRLEN JSON.ARRAPPEND
	JSON.ARRLEN JSON.ARRPOP JSON.OBJKEYS JSON.OBJLEN JSON.MERGE BF.ADD BF.EXISTS BF.MADD BF.MEXISTS
	BF.RESERVE BF.INSERT BF.CARD CF.ADD CF.EXISTS CF.DEL CF.RESERVE TS.ADD TS.GET TS.RANGE TS.CREATE VADD
	VSIM VCARD VDIM VEMB VREM`)
	return table
}()

// keyPositions gives the positions of the keys of a known command, as a finder does.
func keyPositions(args []string) []int {
	c := commands[strings.ToUpper(args[0])]
	if c.first == 0 {
		return []int{}
	}
	if c.keys != nil {
		return c.keys(args)
	}
	last := c.last
	if last < 0 {
		last += len(args)
	}
	at := []int{}
	for i := c.first; i <= last && i < len(args); i += c.step {
		at = append(at, i)
	}
	return at
}

// counted finds keys after their number, which is at a position.
func counted(at int) finder {
	return func(args []string) []int {
		if at >= len(args) {
			return nil
		}
		n, err := strconv.Atoi(args[at])
		if err != nil || n < 0 || n >= len(args)-at {
			return nil
		}
		keys := make([]int, n)
		for i := range keys {
			keys[i] = at + 1 + i
		}
		return keys
	}
}

// destination finds the key that is written, and the counted keys after it.
func destination(args []string) []int {
	sources := counted(2)(args)
	if sources == nil {
		return nil
	}
	return append([]int{1}, sources...)
}

// subcommandKey finds the key after one of these subcommands.
func subcommandKey(names ...string) finder {
	return func(args []string) []int {
		for _, name := range names {
			if len(args) > 2 && strings.EqualFold(args[1], name) {
				return []int{2}
			}
		}
		return []int{}
	}
}

// streamKeys finds the first half of the arguments after STREAMS.
func streamKeys(args []string) []int {
	options := 1
	if strings.EqualFold(args[0], "XREADGROUP") {
		options = 4 // GROUP, and two names
	}
	for i := options; i < len(args); i++ {
		if strings.EqualFold(args[i], "STREAMS") {
			n := (len(args) - i - 1) / 2
			keys := make([]int, n)
			for k := range keys {
				keys[k] = i + 1 + k
			}
			return keys
		}
	}
	return nil
}

// sortKeys finds the first key and those after STORE, STOREDIST, BY and GET, of SORT and GEORADIUS. What BY and GET
// name are patterns of keys, but not `BY nosort` and `GET #`.
func sortKeys(args []string) []int {
	if len(args) < 2 {
		return nil
	}
	keys := []int{1}
	geo := strings.HasPrefix(strings.ToUpper(args[0]), "GEO")
	for i := 2; i+1 < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "STORE", "STOREDIST":
			keys = append(keys, i+1)
		case "BY", "GET":
			if !geo && args[i+1] != "#" && !strings.EqualFold(args[i+1], "nosort") {
				keys = append(keys, i+1)
			}
		}
	}
	return keys
}

// missReads are the commands whose reply to a miss is empty: null, an aggregate without elements, or one of nulls. (The
// number 0 is no miss.)
var missReads = setOf(`
	GET GETDEL GETEX GETSET MGET HGET HGETDEL HMGET HGETALL HKEYS HVALS HRANDFIELD LPOP RPOP LINDEX LPOS
	LRANGE RPOPLPUSH LMOVE SPOP SRANDMEMBER SMEMBERS SINTER SUNION SDIFF SORT SORT_RO ZSCORE ZMSCORE ZRANK
	ZREVRANK ZRANDMEMBER ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZPOPMIN
	ZPOPMAX ZDIFF ZINTER ZUNION XRANGE XREVRANGE GEOPOS GEOHASH GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO
	BLPOP BRPOP BLMOVE BRPOPLPUSH BZPOPMIN BZPOPMAX LMPOP ZMPOP BLMPOP BZMPOP GEODIST DUMP OBJECT MEMORY
	XREAD XREADGROUP JSON.GET VEMB`)

// readOnly are the commands that write no key, by the flags in COMMAND of redis 8.0.2 and valkey 8.1.1, to which a test
// compares it, and those without keys that leave nothing.
var readOnly = setOf(`
	PING ECHO TIME PUBLISH SPUBLISH DUMP TYPE TTL PTTL EXPIRETIME PEXPIRETIME EXISTS TOUCH OBJECT MEMORY
	SORT_RO GET MGET STRLEN SUBSTR GETRANGE GETBIT BITCOUNT BITPOS PFCOUNT BITFIELD_RO LCS LLEN LINDEX
	LRANGE LPOS HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HSCAN HRANDFIELD HTTL HPTTL HEXPIRETIME
	HPEXPIRETIME SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER SSCAN SDIFF SINTER SUNION SINTERCARD ZSCORE
	ZMSCORE ZRANK ZREVRANK ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE
	ZRANGEBYLEX ZREVRANGEBYLEX ZRANDMEMBER ZSCAN ZDIFF ZINTER ZUNION ZINTERCARD GEODIST GEOHASH GEOPOS
	GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO XLEN XRANGE XREVRANGE XREAD XPENDING XINFO EVAL_RO
	EVALSHA_RO FCALL_RO JSON.GET JSON.TYPE JSON.STRLEN JSON.ARRLEN JSON.OBJKEYS JSON.OBJLEN BF.EXISTS BF.MEXISTS
	BF.CARD CF.EXISTS TS.GET TS.RANGE VSIM VCARD VDIM VEMB`)

// subcommanded are the commands whose first argument is a part of their name.
var subcommanded = setOf("OBJECT MEMORY XINFO XGROUP CLIENT SLOWLOG LATENCY PUBSUB COMMAND SCRIPT FUNCTION CONFIG " +
	"CLUSTER ACL MODULE DEBUG")

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// opName is the name of calls of a command: in upper case, with its subcommand.
func opName(args []string) string {
	name := strings.ToUpper(args[0])
	if subcommanded[name] && len(args) > 1 {
		name += " " + strings.ToUpper(args[1])
	}
	return name
}
