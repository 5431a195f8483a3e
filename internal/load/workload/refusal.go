package workload

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// ErrDangerous: a command harms the server, or data that are not of the load. Options.Dangerous allows
	// it.
	ErrDangerous = errors.New("a load does not send this command")
	// ErrState: after a command the connection does not give one reply per request any more. Nothing allows it.
	ErrState = errors.New("it changes the state of the connection")
)

// dangerous are commands, or commands with a subcommand, that erase data, stop or slow down the server, or change its
// settings.
var dangerous = setOf(`
	FLUSHALL FLUSHDB SWAPDB CONFIG SHUTDOWN DEBUG KEYS SAVE BGSAVE BGREWRITEAOF REPLICAOF SLAVEOF FAILOVER
	CLUSTER ACL MIGRATE MODULE RESTORE-ASKING PFDEBUG PFSELFTEST SCRIPT FUNCTION MOVE XSETID
	COMMANDLOG CLIENT.KILL CLIENT.PAUSE CLIENT.UNPAUSE CLIENT.UNBLOCK CLIENT.NO-EVICT CLIENT.IMPORT-SOURCE
	MEMORY.PURGE SLOWLOG.RESET LATENCY.RESET LATENCY.DOCTOR MEMORY.DOCTOR`)

// stateful change the state of the connection in ways that a stream of requests cannot follow.
var stateful = setOf(`
	SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE MONITOR SYNC PSYNC REPLCONF HELLO
	AUTH SELECT QUIT RESET READONLY READWRITE ASKING CLIENT.REPLY CLIENT.TRACKING CLIENT.CACHING CLIENT.CAPA
	CLIENT.SETNAME CLIENT.SETINFO`)

// blocking commands block their connection until there is data, by default without limit.
var blocking = setOf("BLPOP BRPOP BLMOVE BRPOPLPUSH BZPOPMIN BZPOPMAX BLMPOP BZMPOP WAIT WAITAOF")

// refuse says why a command is not sent, or nil.
func refuse(args []string, allowDangerous bool) error {
	name := strings.ToUpper(args[0])
	full := name
	if len(args) > 1 {
		full = name + "." + strings.ToUpper(args[1])
	}
	if stateful[name] || stateful[full] {
		return fmt.Errorf("%s: %w: leave it out", opName(args), ErrState)
	}
	if allowDangerous {
		return nil
	}
	if dangerous[name] || dangerous[full] {
		return fmt.Errorf("%s: %w without --dangerous", opName(args), ErrDangerous)
	}
	if _, known := commands[name]; !known && name != "CLIENT" {
		return fmt.Errorf("%s: %w without --dangerous: it is not known which of its arguments are keys", name,
			ErrDangerous)
	}
	return nil
}

// scripts run code on the server, which can read, change and remove every key of every database. No text tells what it
// does, so it is not searched: what a caller knows of the server decides whether they are sent.
var scripts = setOf("EVAL EVAL_RO EVALSHA EVALSHA_RO FCALL FCALL_RO")

func runsScript(args []string) bool { return scripts[strings.ToUpper(args[0])] }

var (
	hexSHA1 = regexp.MustCompile(`^[0-9a-fA-F]{40}$`)
	luaCall = regexp.MustCompile(`\b(?:redis|server)\s*\.\s*p?call\s*\(\s*(?:'([^']*)'|"([^"]*)")`)
)

// scriptReads: the script calls commands, and only reading ones, as far as its text shows. It decides what is a miss.
func scriptReads(script string) bool {
	calls := luaCall.FindAllStringSubmatch(script, -1)
	for _, call := range calls {
		if !missReads[strings.ToUpper(call[1]+call[2])] {
			return false
		}
	}
	return len(calls) > 0
}
