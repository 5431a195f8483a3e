package session

import (
	"strings"
	"testing"
)

func TestAllowed(t *testing.T) {
	for _, command := range []string{
		"PING", "ping", "PING x", "ECHO x", "GET slowpath:x", "GET {tag}slowpath:x", "TYPE slowpath:absent", "INFO",
		"INFO everything",
		"INFO server clients", "HELLO 3", "AUTH p", "AUTH u p", "SELECT 3", "READONLY", "SLOWLOG GET", "slowlog get 32",
		"SLOWLOG LEN", "COMMANDLOG GET 16 large-reply", "commandlog get 128 large-request", "COMMANDLOG GET 1 slow",
		"CLUSTER SLOT-STATS SLOTSRANGE 0 2047", "cluster slot-stats slotsrange 16383 16383",
		"LATENCY LATEST", "LATENCY HISTORY fork", "LATENCY HISTOGRAM", "LATENCY DOCTOR", "COMMAND COUNT",
		"CONFIG GET maxmemory*",
		"CONFIG GET save hz", "CLIENT LIST", "CLIENT LIST TYPE normal", "CLIENT INFO", "CLIENT ID", "CLIENT SETNAME x",
		"CLIENT SETINFO LIB-NAME x", "CLUSTER INFO", "CLUSTER NODES", "CLUSTER SLOTS", "CLUSTER SHARDS",
		"CLUSTER LINKS", "MEMORY STATS",
		"ACL WHOAMI", "SENTINEL GET-MASTER-ADDR-BY-NAME m", "sentinel sentinels m",
		"PUBLISH __cluster__:moved x", "publish __cluster__:failover x",
	} {
		if !Allowed(strings.Fields(command)...) {
			t.Errorf("%s is refused", command)
		}
	}
	for _, args := range forbiddenCommands() {
		if Allowed(args...) {
			t.Errorf("%q is allowed", args)
		}
	}
}

func TestWritesOwnKey(t *testing.T) {
	for command, want := range map[string]bool{
		"SET slowpath:probe:x v EX 60":         true,
		"set {tag}slowpath:probe:x v ex 1":     true,
		"DEL slowpath:probe:x":                 true,
		"DEL {tag}slowpath:probe:x":            true,
		"SET slowpath:probe:x v":               false, // it would stay
		"SET slowpath:probe:x v EX 61":         false,
		"SET slowpath:probe:x v EX 0":          false,
		"SET slowpath:probe:x v PX 60":         false,
		"SET slowpath:probe:x v EX 60 KEEPTTL": false,
		"SET user:1 v EX 60":                   false,
		"SET slowpath:bench:1 v EX 60":         false,
		"DEL slowpath:probe:x slowpath:bench":  false,
		"DEL user:1":                           false,
		"DEL {slowpath:probe:}slowpath:bench":  false,
		"DEL":                                  false,
		"UNLINK slowpath:probe:x":              false,
		"GET slowpath:probe:x":                 false, // it is allowed anyway
		"SET slowpath:probe:x " + strings.Repeat("v", maxWrittenBytes+1) + " EX 60": false,
	} {
		if got := writesOwnKey(strings.Fields(command)); got != want {
			t.Errorf("%s: %v", command, got)
		}
		if want && Allowed(strings.Fields(command)...) {
			t.Errorf("%s is allowed without PermitWrites", command)
		}
	}
}

// forbiddenCommands are those named in the design, the neighbours of what is allowed, and every other command of Redis
// 7.0 and later additions with plausible arguments.
func forbiddenCommands() [][]string {
	cmds := [][]string{
		nil,
		{""},
		{"GET", ""},
		{"GET", "slowpath:a", "slowpath:b"},
		{"CONFIG GET", "hz"},
		{"GET", "{}slowpath:x"},
		{"GET", "{{a}slowpath:x"},
		{"GET", "{aslowpath:x"},
		{"GET", "xslowpath:"},
		{"GET", "SLOWPATH:x"},
		{"PING\r\nFLUSHALL"},
		{"CONFIG", "GET", "req[u]irepass"},
		{"CONFIG", "GET", `require\pass`},
		{"CONFIG", "GET", ""},
		{"CONFIG", "GET", "hz", "*"},
	}
	for _, command := range []string{
		"MONITOR", "KEYS *", "FLUSHALL", "FLUSHDB", "GET k", "TYPE k", "CONFIG", "CONFIG SET hz 10", "CONFIG REWRITE",
		"CONFIG RESETSTAT",
		"CONFIG GET", "CONFIG GET *", "CONFIG GET requirepass", "CONFIG GET REQUIREPASS", "CONFIG GET r*",
		"CONFIG GET *auth",
		"CONFIG GET tls-*", "CONFIG GET requirepas?", "CONFIG GET primaryauth", "DEBUG SLEEP 0", "DEBUG OBJECT k",
		"SLOWLOG RESET", "SLOWLOG",
		"SLOWLOG GET -1", "SLOWLOG GET 1000000", "SLOWLOG GET x", "SLOWLOG GET 1 2", "LATENCY RESET",
		"LATENCY GRAPH fork", "LATENCY",
		"CLIENT KILL ID 1", "CLIENT PAUSE 1", "CLIENT UNPAUSE", "CLIENT REPLY OFF", "CLIENT NO-EVICT ON",
		"CLIENT TRACKING ON", "CLIENT CACHING YES",
		"CLIENT UNBLOCK 1", "CLIENT", "CLUSTER RESET", "CLUSTER FAILOVER", "CLUSTER MEET h 1", "CLUSTER ADDSLOTS 1",
		"CLUSTER SETSLOT 1 STABLE",
		"CLUSTER FORGET x", "CLUSTER COUNTKEYSINSLOT 1", "CLUSTER GETKEYSINSLOT 1 1", "CLUSTER SAVECONFIG",
		"CLUSTER BUMPEPOCH", "MEMORY USAGE k",
		"MEMORY PURGE", "MEMORY DOCTOR", "MEMORY MALLOC-STATS", "ACL SETUSER x", "ACL LIST", "ACL GETUSER default",
		"ACL LOG", "ACL SAVE",
		"COMMAND", "COMMAND DOCS", "COMMAND INFO get", "SHUTDOWN", "SAVE", "BGSAVE", "BGREWRITEAOF", "REPLICAOF no one",
		"SLAVEOF no one",
		"FAILOVER", "PSYNC ? -1", "SYNC", "REPLCONF x 1", "SET slowpath:x 1", "DEL slowpath:x", "UNLINK slowpath:x",
		"EXPIRE slowpath:x 1",
		"MGET slowpath:x", "EXISTS slowpath:x", "SCAN 0", "RANDOMKEY", "DBSIZE", "OBJECT FREQ slowpath:x",
		"DUMP slowpath:x", "SORT slowpath:x",
		"EVAL x 0", "EVALSHA x 0", "EVAL_RO x 0", "SCRIPT LOAD x", "SCRIPT KILL", "FUNCTION LOAD x", "FUNCTION KILL",
		"FCALL f 0", "MULTI", "EXEC", "WATCH k",
		"SUBSCRIBE c", "PSUBSCRIBE *", "PUBLISH c x", "PUBLISH __cluster__:moved", "PUBLISH __cluster__:moved x y",
		"PUBLISH __cluster__:movedx y", "SPUBLISH __cluster__:moved x", "PUBSUB CHANNELS", "WAIT 1 1", "SWAPDB 0 1",
		"MOVE k 1", "MIGRATE h 1 k 0 1", "RESTORE k 0 x",
		"MODULE LOAD x", "MODULE LIST", "RESET", "QUIT", "READWRITE", "ASKING", "ROLE", "TIME", "LOLWUT", "ECHO",
		"ECHO a b", "READONLY x",
		"AUTH", "AUTH a b c", "SELECT", "PING a b", "INCR slowpath:x", "APPEND slowpath:x y", "GETDEL slowpath:x",
		"GETEX slowpath:x EX 1", "GETSET slowpath:x y",
		"COMMANDLOG RESET large-reply", "COMMANDLOG GET", "COMMANDLOG GET 129 slow", "COMMANDLOG GET -1 large-reply",
		"COMMANDLOG GET 1 x", "COMMANDLOG GET 1 slow x", "COMMANDLOG LEN slow", "CLUSTER SLOT-STATS",
		"CLUSTER SLOT-STATS ORDERBY CPU-USEC", "CLUSTER SLOT-STATS SLOTSRANGE 0 2048",
		"CLUSTER SLOT-STATS SLOTSRANGE 0 16384", "CLUSTER SLOT-STATS SLOTSRANGE 2 1",
		"CLUSTER SLOT-STATS SLOTSRANGE -1 1", "HOTKEYS START METRICS 1 CPU", "HOTKEYS GET",
		"SENTINEL FAILOVER x", "SENTINEL", "SENTINEL RESET x", "SENTINEL REMOVE x",
		"SENTINEL SET x quorum 1", "SENTINEL SENTINELS", "SENTINEL MONITOR m h 1 1", "UNKNOWN",
	} {
		cmds = append(cmds, strings.Fields(command), strings.Fields(strings.ToLower(command)))
	}
	return cmds
}

// FuzzAllowed holds the allow-list against arbitrary words: whatever is let through begins with a command that only
// reads.
func FuzzAllowed(f *testing.F) {
	f.Add("CONFIG GET hz")
	f.Add("get slowpath:1")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		if !Allowed(args...) {
			return
		}
		switch strings.ToUpper(args[0]) {
		case "PING", "ECHO", "INFO", "HELLO", "AUTH", "SELECT", "READONLY":
		case "PUBLISH":
			if args[1] != "__cluster__:moved" && args[1] != "__cluster__:failover" {
				t.Errorf("%q is allowed", args)
			}
		case "GET", "TYPE":
			if !strings.Contains(args[1], "slowpath:") {
				t.Errorf("%q is allowed", args)
			}
		case "SLOWLOG", "LATENCY", "COMMAND", "CONFIG", "CLIENT", "CLUSTER", "MEMORY", "ACL", "SENTINEL",
			"COMMANDLOG":
			switch strings.ToUpper(args[1]) {
			case "FAILOVER", "MONITOR", "REMOVE", "SET", "RESET", "KILL", "PAUSE", "REWRITE", "RESETSTAT", "REPLY",
				"TRACKING":
				t.Errorf("%q is allowed", args)
			}
		default:
			t.Errorf("%q is allowed", args)
		}
	})
}
