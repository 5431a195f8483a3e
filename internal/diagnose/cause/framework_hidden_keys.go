package cause

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// frameworkHiddenKeys: nobody wrote the command that holds the event loop. A framework sends it for a call that looks
// harmless, such as clearing a cache. The mechanism at the server is that of slow-command.
var frameworkHiddenKeys = Cause{
	ID:    "framework-hidden-keys",
	Title: "A framework sends a command that walks all keys, for a harmless-looking call; all other calls wait",
	Layer: "client",
	Class: ServerStall,
	Needs: Needs{
		T0: "SLOWLOG entries of KEYS and similar with a pattern in the default form of a known " +
			"framework, or from a client that names the framework in CLIENT LIST (lib-name); and " +
			"what the same connection deletes right after",
		T1: "the main thread on the CPU all the time meanwhile",
		T2: "each time that such a command held the main thread, with its connection and process",
	},
	Mechanism: "A framework (Spring Cache, Django, Laravel and others) implements a harmless call, such as " +
		"clearing a cache, by KEYS or another command that walks all keys. At the server it is a slow command " +
		"that nobody wrote.",
	RuledOut: "Patterns and clients that belong to no known framework: then it is a slow command of the " +
		"application itself",
	LookAlikes: []LookAlike{
		{"slow-command", "there the pattern or the client's name is that of no framework"},
	},
	Remedy: "Let the framework walk by SCAN or not at all: an option or another class of it; give its keys a " +
		"database or a version of their own; forbid KEYS by ACL to find all callers.",
	See:     slices.Concat(springPages, walkPages),
	Explain: explainFramework,
}

func explainFramework(n *facts.Node) *Finding {
	h := n.ClaimOfKind(facts.KindFrameworkKeys)
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim, h.Confidence(n))
	worst := h.Suspects[0]
	framework := n.FrameworkOf(worst)
	f.Title = fmt.Sprintf("%s sends %s for a harmless-looking call, and all other calls wait", framework, worst.Command)
	f.supportCommands(n, h.Suspects)
	f.supportFramework(n, worst, framework)
	f.supportWaits(n, h, worst.Command)
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	f.Fix = frameworkFix(n, framework, worst)
	f.See = frameworkSee(framework)
	return f
}

// oneKey is the number of arguments of a command for one key.
// Bound: arithmetic, the command and the key.
const oneKey = 2

// supportFramework says how the framework was recognised, and what it did with the keys that it found.
func (f *Finding) supportFramework(n *facts.Node, s account.Suspect, framework string) {
	entries, after := 0, 0
	found := int64(-1)
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		d := recording.DetailOf[recording.SlowlogDetail](e)
		switch {
		case d.Command == s.Command && d.Framework == framework:
			entries++
			found = d.ID
		case (d.Command == "DEL" || d.Command == "UNLINK") && d.ArgCount > oneKey && found >= 0 && d.ID > found:
			after++
		}
	}
	if entries > 0 {
		f.support(recording.SourceServer, float64(entries), "commands",
			"%s of %s in SLOWLOG with patterns in the form of %s keys", counted(entries, "entry", "entries"), s.Command,
			framework)
	}
	for _, c := range n.Clients() {
		if c.Addr == s.Client && c.LibName != "" {
			f.support(recording.SourceServer, 0, "", "CLIENT LIST: %s%s", c.Addr, facts.LibraryText(c))
			break
		}
	}
	if after > 0 {
		f.support(recording.SourceServer, float64(after), "commands",
			"%d DEL or UNLINK of many keys followed: it deletes what it found", after)
	}
}

// frameworkFixes is what to change in a framework, by its name.
var frameworkFixes = map[string][]string{
	"Spring Cache": {
		"Spring Cache clears a cache by KEYS NAME::*: " +
			"RedisCacheManager.builder(RedisCacheWriter.nonLockingRedisCacheWriter(connectionFactory, " +
			"BatchStrategies.scan(1000)))   # Spring Data Redis >= 2.6",
		"Evict single keys (@CacheEvict(key = …)) instead of allEntries = true, or let entries expire (entryTtl)",
	},
	"Spring Session": {"If sessions are not looked up by user: @EnableRedisHttpSession has no index to " +
		"walk (RedisSessionRepository); with RedisIndexedSessionRepository: " +
		"configureKeyspaceNotifications, and its cleanup cron setCleanupCron"},
	"Spring Security OAuth": {"RedisTokenStore keeps all tokens of a client in one list (client_id_to_access:…) " +
		"and reads all of it: use JwtTokenStore or Spring Authorization Server with a database"},
	"Flask-Caching": {"cache.clear() of RedisCache is KEYS flask_cache_* and DEL: give the cache its own database " +
		"(without a prefix it is FLUSHDB); or use delete_many with known keys, or TTLs"},
	"Django": {"django-redis: cache.delete_pattern(…, itersize=1000) walks by SCAN, cache.keys(…) by KEYS; or use " +
		"a version per group (cache.incr_version), so that nothing has to be deleted"},
	"Laravel": {"Cache tags (Cache::tags(…)->flush()) walk sets of keys: php artisan cache:prune-stale-tags each " +
		"hour, or keys with a version; Redis::keys() only with few keys"},
	"connect-redis": {"store.all(), ids(), length() and clear() walk all sessions: " +
		"do not call them in requests; scanCount: 1000"},
	"Bull": {"queue.obliterate, clean and getJobs(…) without an end walk whole queues: " +
		"removeOnComplete: 1000, removeOnFail: 1000, and ranges"},
	"Celery": {"a shorter result_expires, or ignore_result=True; fewer queues per " +
		"exchange, since each task reads the set of bindings"},
}

func frameworkFix(n *facts.Node, framework string, s account.Suspect) []string {
	fix := append([]string(nil), frameworkFixes[framework]...)
	if strings.HasPrefix(framework, "Spring") && len(fix) == 0 {
		fix = append(fix, frameworkFixes["Spring Cache"]...)
	}
	if len(fix) == 0 {
		fix = append(fix,
			fmt.Sprintf("Find the call of %s behind it%s: usually one that clears, counts or lists everything",
				framework, n.FromText([]account.Suspect{s})))
	}
	name, _, _ := strings.Cut(s.Command, " ")
	if facts.ServerAtLeast(n, 6, 0) {
		return append(fix,
			fmt.Sprintf("To find all callers that do so: ACL SETUSER app -%s, which makes it an error",
				format.Shell(strings.ToLower(name))))
	}
	return append(fix,
		fmt.Sprintf("To find all callers that do so: rename-command %s \"\" in redis.conf, which makes it an error",
			format.Shell(name)))
}

var (
	springPages = []string{
		"https://docs.spring.io/spring-data/redis/reference/redis/redis-cache.html",
		"https://github.com/spring-projects/spring-data-redis/issues/1721",
	}
	walkPages = []string{
		"https://redis.io/docs/latest/commands/keys/",
		"https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/#latency-generated-by-slow-commands",
	}
)

func frameworkSee(framework string) []string {
	if strings.HasPrefix(framework, "Spring") {
		return springPages
	}
	return walkPages
}
