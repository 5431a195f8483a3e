package session

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// keyPrefix begins the keys that may be read. They do not exist: a GET of one is the cheapest command that searches the
// keyspace.
const keyPrefix = "slowpath:"

// maxSlowlogEntries bounds SLOWLOG GET: copying thousands of entries takes milliseconds of the server's time.
const maxSlowlogEntries = 128

// rule says whether the arguments after the command (and subcommand) are allowed.
type rule func(args []string) bool

func anyArgs([]string) bool { return true }

// between allows min to max arguments.
func between(min, max int) rule {
	return func(args []string) bool { return len(args) >= min && len(args) <= max }
}

// allowed lists all that may be sent, by command, or by command and subcommand.
var allowed = map[string]rule{
	"PING":     between(0, 1),
	"ECHO":     between(1, 1),
	"GET":      oneOwnKey,
	"TYPE":     oneOwnKey,
	"INFO":     anyArgs,
	"HELLO":    anyArgs,
	"AUTH":     between(1, 2),
	"SELECT":   between(1, 1),
	"READONLY": between(0, 0),

	"SLOWLOG GET":        fewEntries,
	"SLOWLOG LEN":        between(0, 0),
	"COMMANDLOG GET":     fewLogged,
	"LATENCY LATEST":     between(0, 0),
	"LATENCY HISTORY":    between(1, 1),
	"LATENCY HISTOGRAM":  anyArgs,
	"LATENCY DOCTOR":     between(0, 0),
	"COMMAND COUNT":      between(0, 0),
	"CONFIG GET":         noSecrets,
	"CLIENT LIST":        anyArgs,
	"CLIENT INFO":        between(0, 0),
	"CLIENT ID":          between(0, 0),
	"CLIENT SETNAME":     between(1, 1),
	"CLIENT SETINFO":     between(2, 2),
	"CLUSTER INFO":       between(0, 0),
	"CLUSTER NODES":      between(0, 0),
	"CLUSTER SLOTS":      between(0, 0),
	"CLUSTER SHARDS":     between(0, 0),
	"CLUSTER LINKS":      between(0, 0),
	"CLUSTER SLOT-STATS": someSlots,
	"MEMORY STATS":       between(0, 0),
	"ACL WHOAMI":         between(0, 0),

	"PUBLISH": clusterChannel, // by topology watch --publish only

	"SENTINEL GET-MASTER-ADDR-BY-NAME": between(1, 1),
	"SENTINEL SENTINELS":               between(1, 1),
}

// Allowed reports whether a session may send this command.
func Allowed(args ...string) bool {
	if len(args) == 0 || strings.Contains(args[0], " ") {
		return false
	}
	name := strings.ToUpper(args[0])
	if ok, known := allowed[name]; known {
		return ok(args[1:])
	}
	if len(args) == 1 {
		return false
	}
	ok, known := allowed[name+" "+strings.ToUpper(args[1])]
	return known && ok(args[2:])
}

// oneOwnKey allows a single key that is slowpath's own: "slowpath:…", or "{tag}slowpath:…" to reach a certain slot.
func oneOwnKey(args []string) bool {
	return len(args) == 1 && strings.HasPrefix(withoutTag(args[0]), keyPrefix)
}

// withoutTag is a key without the hash tag that it begins with; empty where that is none.
func withoutTag(key string) string {
	tagged, ok := strings.CutPrefix(key, "{")
	if !ok {
		return key
	}
	tag, rest, closed := strings.Cut(tagged, "}")
	if !closed || tag == "" || strings.Contains(tag, "{") {
		return ""
	}
	return rest
}

// Keys that PermitWrites lets a session write: they hold a few bytes and expire soon.
const (
	writtenPrefix     = keyPrefix + "probe:"
	maxWrittenBytes   = 64
	maxWrittenSeconds = 60
)

// writesOwnKey allows SET KEY VALUE EX SECONDS and DEL KEY of a single key that is slowpath's own.
func writesOwnKey(args []string) bool {
	if len(args) < 2 || !strings.HasPrefix(withoutTag(args[1]), writtenPrefix) {
		return false
	}
	switch strings.ToUpper(args[0]) {
	case "DEL":
		return len(args) == 2
	case "SET":
		if len(args) != 5 || strings.ToUpper(args[3]) != "EX" || len(args[2]) > maxWrittenBytes {
			return false
		}
		n, err := strconv.Atoi(args[4])
		return err == nil && n > 0 && n <= maxWrittenSeconds
	}
	return false
}

// clusterChannel allows messages on the two channels for changes of a cluster's map. A message changes nothing at the
// server.
func clusterChannel(args []string) bool {
	return len(args) == 2 && (args[0] == "__cluster__:moved" || args[0] == "__cluster__:failover")
}

func fewEntries(args []string) bool {
	if len(args) == 0 {
		return true // the server's default, 10
	}
	n, err := strconv.Atoi(args[0])
	return err == nil && len(args) == 1 && n > 0 && n <= maxSlowlogEntries
}

// fewLogged allows a few entries of one of the logs of COMMANDLOG.
func fewLogged(args []string) bool {
	return len(args) == 2 && fewEntries(args[:1]) &&
		slices.Contains([]string{"slow", "large-request", "large-reply"}, strings.ToLower(args[1]))
}

// maxSlots bounds CLUSTER SLOT-STATS: so many take up to a millisecond of the server's time.
const maxSlots = 2048

// someSlots allows SLOTSRANGE FIRST LAST. ORDERBY takes all slots of the server, however few it is to reply with.
func someSlots(args []string) bool {
	if len(args) != 3 || strings.ToUpper(args[0]) != "SLOTSRANGE" {
		return false
	}
	first, err := strconv.ParseUint(args[1], 10, 14)
	last, err2 := strconv.ParseUint(args[2], 10, 14)
	return err == nil && err2 == nil && first <= last && last-first < maxSlots
}

// secretSettings are the parameters whose value is a password, or the passphrase of a key file.
var secretSettings = []string{
	"requirepass", "masterauth", "primaryauth", "tls-key-file-pass",
	"tls-client-key-file-pass",
}

// noSecrets allows CONFIG GET of patterns that match no secret. They may have only letters, digits, -, _, * and ?:
// other syntax of the server's matcher is not evaluated here.
func noSecrets(patterns []string) bool {
	if len(patterns) == 0 {
		return false
	}
	for _, pattern := range patterns {
		pattern = strings.ToLower(pattern)
		if pattern == "" || strings.ContainsFunc(pattern, notPlain) {
			return false
		}
		for _, secret := range secretSettings {
			if hit, err := path.Match(pattern, secret); hit || err != nil {
				return false
			}
		}
	}
	return true
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-_*?", r)
}

// forbidden names the command but not its arguments, which may be secret.
func forbidden(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: an empty command", ErrForbidden)
	}
	return fmt.Errorf("%w: %q", ErrForbidden, strings.ToUpper(args[0]))
}
