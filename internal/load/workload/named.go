package workload

import (
	"maps"
	"slices"
	"strings"
)

// share is a template and its share of the calls of a named command.
type share struct {
	template string
	ratio    float64
}

// Named lists the names that stand for templates, in order.
func Named() string { return strings.Join(slices.Sorted(maps.Keys(named)), " ") }

// named are the commands that can be given by name alone. Commands of one type share their keys; those of different
// types have different ones. Nothing grows without limit: hashes, sets and sorted sets have a fixed number of members,
// streams have MAXLEN, and 1 % of the pushes to a list are an LTRIM to its first 1000 elements instead, which is an op
// of its own in the results.
var named = func() map[string][]share {
	table := map[string][]share{}
	for _, list := range []string{namedStrings, namedHashes, namedLists, namedSets, namedSortedSets, namedOthers} {
		for line := range strings.Lines(list) {
			name, template, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != "" {
				table[name] = []share{{strings.TrimSpace(template), 1}}
			}
		}
	}
	for _, push := range []string{"lpush", "rpush"} {
		from := "0 999"
		if push == "rpush" {
			from = "-1000 -1"
		}
		table[push] = []share{{table[push][0].template, 0.99}, {"LTRIM list:{key} " + from, 0.01}}
	}
	return table
}()

const namedStrings = `
get       GET key:{key}
set       SET key:{key} {value}
setex     SETEX key:{key} 3600 {value}
psetex    PSETEX key:{key} 3600000 {value}
setnx     SETNX key:{key} {value}
getset    GETSET key:{key} {value}
mget      MGET key:{key:10}
mset      MSET key:{key:10} {value}
strlen    STRLEN key:{key}
getrange  GETRANGE key:{key} 0 99
setrange  SETRANGE key:{key} 0 {value}
del       DEL key:{key}
unlink    UNLINK key:{key}
exists    EXISTS key:{key}
touch     TOUCH key:{key}
type      TYPE key:{key}
ttl       TTL key:{key}
expire    EXPIRE key:{key} 3600
incr      INCR counter:{key}
decr      DECR counter:{key}
incrby    INCRBY counter:{key} {rand:1-100}
setbit    SETBIT bitmap:{key} {rand:0-65535} 1
getbit    GETBIT bitmap:{key} {rand:0-65535}
bitcount  BITCOUNT bitmap:{key}
pfadd     PFADD hll:{key} {unique}
pfcount   PFCOUNT hll:{key}
`

const namedHashes = `
hset      HSET hash:{key} field:{rand:0-9} {value}
hsetnx    HSETNX hash:{key} field:{rand:0-9} {value}
hget      HGET hash:{key} field:{rand:0-9}
hmget     HMGET hash:{key} field:0 field:1 field:2 field:3 field:4
hgetall   HGETALL hash:{key}
hexists   HEXISTS hash:{key} field:{rand:0-9}
hdel      HDEL hash:{key} field:{rand:0-9}
hlen      HLEN hash:{key}
hincrby   HINCRBY counters:{key} field:{rand:0-9} 1
`

const namedLists = `
lpush     LPUSH list:{key} {value}
rpush     RPUSH list:{key} {value}
lpop      LPOP list:{key}
rpop      RPOP list:{key}
llen      LLEN list:{key}
lindex    LINDEX list:{key} 0
lrange    LRANGE list:{key} 0 99
ltrim     LTRIM list:{key} 0 999
`

const namedSets = `
sadd      SADD set:{key} member:{rand:0-9}
srem      SREM set:{key} member:{rand:0-9}
spop      SPOP set:{key}
scard     SCARD set:{key}
sismember SISMEMBER set:{key} member:{rand:0-9}
smembers  SMEMBERS set:{key}
srandmember SRANDMEMBER set:{key}
`

const namedSortedSets = `
zadd      ZADD zset:{key} {rand:0-1000000} member:{rand:0-9}
zincrby   ZINCRBY zset:{key} 1 member:{rand:0-9}
zrem      ZREM zset:{key} member:{rand:0-9}
zscore    ZSCORE zset:{key} member:{rand:0-9}
zrank     ZRANK zset:{key} member:{rand:0-9}
zcard     ZCARD zset:{key}
zcount    ZCOUNT zset:{key} 0 500000
zrange    ZRANGE zset:{key} 0 9
zrevrange ZREVRANGE zset:{key} 0 9
zrangebyscore ZRANGEBYSCORE zset:{key} 0 1000000 LIMIT 0 10
zpopmin   ZPOPMIN zset:{key}
geoadd    GEOADD geo:{key} 13.{rand:100000-999999} 52.{rand:100000-999999} place:{rand:0-9}
geopos    GEOPOS geo:{key} place:{rand:0-9}
`

const namedOthers = `
ping      PING
echo      ECHO {value}
xadd      XADD stream:{key} MAXLEN ~ 1000 * field {value}
xlen      XLEN stream:{key}
xrange    XRANGE stream:{key} - + COUNT 10
xrevrange XREVRANGE stream:{key} + - COUNT 10
publish   PUBLISH channel {due}:{value}
multi     MULTI; SET key:{key} {value}; INCR counter:{same}; EXEC
evalsha   EVALSHA 'return redis.call("GET", KEYS[1])' 1 key:{key}
eval      EVAL 'return redis.call("GET", KEYS[1])' 1 key:{key}
`
