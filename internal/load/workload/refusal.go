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
	CLUSTER ACL MIGRATE MODULE RESTORE-ASKING PFDEBUG PFSELFTEST SCRIPT FUNCTION FCALL FCALL_RO MOVE XSETID
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
	if (name == "EVAL" || name == "EVALSHA" || name == "EVAL_RO" || name == "EVALSHA_RO") && len(args) > 1 {
		return refuseScript(args[1])
	}
	return nil
}

var (
	hexSHA1   = regexp.MustCompile(`^[0-9a-fA-F]{40}$`)
	luaAccess = regexp.MustCompile(`\b(?:redis|server)\s*[.\[]`)
	luaCall   = regexp.MustCompile(`\b(?:redis|server)\s*\.\s*p?call\s*\(\s*` +
		`(?:'([^']*)'|"([^"]*)")\s*(?:,\s*([^,)]*))?`)
	luaPlain = regexp.MustCompile(`\b(?:redis|server)\s*\.\s*` +
		`(?:error_reply|status_reply|sha1hex|log|LOG_[A-Z]+|setresp|breakpoint|REDIS_VERSION(?:_NUM)?)\b`)
	luaIndirect = regexp.MustCompile(`\b(?:loadstring|load|_G|getfenv|setfenv|rawget)\b|` +
		`=\s*(?:redis|server)\b\s*(?:[^.\s]|$)`)
)

// scriptReads: the script calls commands, and only reading ones.
func scriptReads(script string) bool {
	calls := luaCall.FindAllStringSubmatch(script, -1)
	for _, call := range calls {
		if !missReads[strings.ToUpper(call[1]+call[2])] {
			return false
		}
	}
	return len(calls) > 0
}

// refuseScript searches the text of a script for its calls. It protects from mistakes, not from malice: it allows only
// calls with the name of the command as literal text and the key as KEYS[…].
func refuseScript(script string) error {
	if hexSHA1.MatchString(script) {
		return fmt.Errorf("EVALSHA of a digest: %w without --dangerous: what it calls is not known; write the script "+
			"in its place, it is loaded and its digest sent", ErrDangerous)
	}
	calls := luaCall.FindAllStringSubmatch(script, -1)
	if luaIndirect.MatchString(script) || len(calls)+len(luaPlain.FindAllString(script,
		-1)) != len(luaAccess.FindAllString(script, -1)) {
		return fmt.Errorf("script: %w without --dangerous: a call in it is not written out as redis.call('NAME', "+
			"KEYS[…], …)", ErrDangerous)
	}
	for _, call := range calls {
		name, first := strings.ToUpper(call[1]+call[2]), strings.TrimSpace(call[3])
		if err := refuse([]string{name}, false); err != nil {
			return fmt.Errorf("script: %w", err)
		}
		if c := commands[name]; c.first != 0 && (!strings.HasPrefix(first, "KEYS[") || c.last != 1 || c.keys != nil) {
			return fmt.Errorf("script: %s of %q: %w without --dangerous: its keys are not just one of KEYS[…]", name,
				first, ErrDangerous)
		}
	}
	return nil
}
