package server

import (
	"encoding/json"
	"path"
	"strings"

	"slowpath/internal/wire/resp"
)

// configPatterns are the parameters that matter for latency. They go out as one CONFIG GET each, since only servers
// from 7.0 take several at once; a pattern matches the names of several versions (ziplist and listpack, slave and
// replica).
var configPatterns = []string{
	"slowlog-*", "commandlog-*", "latency-*", "maxmemory*", "maxclients", "tcp-backlog",
	"tcp-keepalive", "timeout", "hz", "dynamic-hz",
	"io-threads*", "append*", "no-appendfsync-on-rewrite", "aof-*", "auto-aof-*", "save", "stop-writes-on-bgsave-error",
	"rdb*", "lazyfree-*",
	"replica-*", "active*", "client-*-limit", "cluster-*", "repl-*", "min-replicas-*", "lua-time-limit",
	"busy-reply-threshold", "disable-thp",
	"oom-score-adj", "*cpulist", "databases", "*-max-*list*-*", "*-max-intset-entries", "*-max-list*-size", "max-new-*",
	"proto-max-bulk-len",
	"prefetch-batch-max-size", "jemalloc-bg-thread", "loglevel", "notify-keyspace-events", "tracking-table-max-keys",
	"shutdown-timeout", "tls-port", "port",
}

// configIgnored match a pattern but are paths, addresses or names of the deployment, not settings of latency.
var configIgnored = []string{
	"appenddirname", "appendfilename", "cluster-config-file", "cluster-announce-*",
	"replica-announce-*", "replicaof",
}

// configCommands are the commands that ask for all of it.
func configCommands() [][]string {
	cmds := make([][]string, len(configPatterns))
	for i, p := range configPatterns {
		cmds[i] = []string{"CONFIG", "GET", p}
	}
	return cmds
}

const maxConfigValueBytes = 1024

// readConfig adds the parameters of a reply to CONFIG GET. What was not asked for is not taken, whatever the server
// sends: so no secret can get in.
func readConfig(into map[string]string, v resp.Value) {
	for k, value := range v.Pairs() {
		name := strings.ToLower(k.Text())
		if matches(configPatterns, name) && !matches(configIgnored, name) && !isSecret(name) && len(into) < 1000 {
			text := value.Text()
			into[name] = text[:min(len(text), maxConfigValueBytes)]
		}
	}
}

// isSecret reports whether a parameter could hold a password or a name. lazyfree-lazy-user-del is about the DEL of
// users.
func isSecret(name string) bool {
	if strings.HasPrefix(name, "lazyfree-") {
		return false
	}
	return strings.Contains(name, "pass") || strings.Contains(name, "auth") || strings.Contains(name, "user") ||
		strings.Contains(name, "secret")
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

// jsonObject encodes a map with its keys in order. Strings and finite numbers always encode.
func jsonObject[V string | float64](m map[string]V) string {
	b, err := json.Marshal(m)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// flatten reads MEMORY STATS: numbers by name, those of nested maps with their path joined by dots.
func flatten(into map[string]float64, prefix string, v resp.Value, depth int) {
	for k, value := range v.Pairs() {
		name := prefix + clip(k.Text())
		if len(value.Elems) > 0 && depth < 3 {
			flatten(into, name+".", value, depth+1)
		} else if n, ok := parseNumber(value.Text()); ok && len(into) < 1000 {
			into[name] = n
		}
	}
}
