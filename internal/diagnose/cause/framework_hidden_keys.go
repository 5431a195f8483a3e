package cause

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// frameworkHiddenKeys: nobody wrote the command that holds the event loop. A framework sends it for a call that looks
// harmless, such as clearing a cache. The mechanism at the server is that of slow-command.
var frameworkHiddenKeys = Cause{
	ID:      "framework-hidden-keys",
	Class:   ServerStall,
	See:     slices.Concat(springPages, walkPages),
	Explain: explainFramework,
}

func explainFramework(n *facts.Node) *Finding {
	h := mainthread.ClaimOfKind(n, mainthread.KindFrameworkKeys)
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	worst := h.Suspects[0]
	framework := mainthread.FrameworkOf(n, worst)
	f.Title = fmt.Sprintf("%s sends %s for a harmless-looking call, and all other calls wait", framework, worst.Command)
	f.supportCommands(n, h.Suspects)
	f.supportFramework(n, worst, framework)
	f.supportWaits(n, h, worst.Command)
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	f.FixSteps = frameworkFix(n, framework, worst)
	f.See = walkPages
	if strings.HasPrefix(framework, "Spring") {
		f.See = springPages
	}
	return f
}

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
		case (d.Command == "DEL" || d.Command == "UNLINK") && d.ArgCount > degree.Several && found >= 0 && d.ID > found:
			after++
		}
	}
	if entries > 0 {
		f.support(recording.SourceServer, float64(entries), "commands",
			"%s of %s in SLOWLOG with patterns in the form of %s keys", counted(entries, "entry", "entries"), s.Command,
			framework)
	}
	for _, c := range caller.Clients(n) {
		if c.Addr == s.Client && c.LibName != "" {
			f.support(recording.SourceServer, 0, "", "CLIENT LIST: %s%s", c.Addr, caller.LibraryText(c))
			break
		}
	}
	if after > 0 {
		f.support(recording.SourceServer, float64(after), "commands",
			"%d DEL or UNLINK of many keys followed: it deletes what it found", after)
	}
}

// frameworkFixes is what to change in a framework, by its name.
var frameworkFixes = map[string][]remedy.Step{
	"Spring Cache": {
		{
			ID: "own-database", Kind: remedy.Setting, Restart: "the application", Library: "Spring Data Redis",
			Option: "spring.data.redis.database", To: "<a database that nothing else uses>",
			Text: "KEYS NAME::*, by which it clears a cache, then walks the keys of the caches alone. A cluster has " +
				"one database only",
			Risk: "the caches begin empty",
		},
		inSteps("Build the cache manager with BatchStrategies.scan, which clears a cache by SCAN: "+
			"RedisCacheManager.builder(RedisCacheWriter.nonLockingRedisCacheWriter(connectionFactory, "+
			"BatchStrategies.scan(1000)))", "Spring Data Redis 2.6").
			Risking("to clear a cache then takes a round trip for each 1000 keys of the database"),
		inApplication("clear-less", "Evict single keys (@CacheEvict with a key) instead of allEntries = true, or let "+
			"entries expire (entryTtl)"),
	},
	"Spring Session": {
		inApplication("no-index", "Where sessions are not looked up by user, use @EnableRedisHttpSession, which has "+
			"no index to walk (RedisSessionRepository). With RedisIndexedSessionRepository: "+
			"configureKeyspaceNotifications, and its cleanup cron setCleanupCron"),
	},
	"Spring Security OAuth": {
		inApplication("no-index", "Use JwtTokenStore or Spring Authorization Server with a database: RedisTokenStore "+
			"keeps all tokens of a client in one list (client_id_to_access:) and reads all of it"),
	},
	"Flask-Caching": {
		inApplication("own-database", "Give the cache its own database, where cache.clear() without a prefix is "+
			"FLUSHDB, or use delete_many with known keys, or TTLs. With a prefix cache.clear() is KEYS flask_cache_* "+
			"and DEL"),
	},
	"Django": {
		inSteps("Call cache.delete_pattern with itersize=1000 and cache.iter_keys, which walk by SCAN, and not "+
			"cache.keys, which is KEYS", ""),
		inApplication("clear-less", "Use a version per group (cache.incr_version), so that nothing has to be deleted"),
	},
	"Laravel": {
		inApplication("clear-less", "Flush no cache tags (Cache::tags), which walks sets of keys: keys with a "+
			"version, and php artisan cache:prune-stale-tags each hour. Redis::keys() only with few keys"),
	},
	"connect-redis": {
		inApplication("clear-less", "Do not call store.all(), ids(), length() and clear() in requests: they walk all "+
			"sessions"),
	},
	"Bull": {
		inApplication("clear-less", "Set removeOnComplete: 1000 and removeOnFail: 1000, and give getJobs and clean an "+
			"end: they and queue.obliterate walk whole queues"),
	},
	"Celery": {
		inApplication("clear-less", "Set a shorter result_expires, or ignore_result=True, and fewer queues per "+
			"exchange, since each task reads the set of bindings"),
	},
}

// inSteps is a step that lets a framework walk by SCAN, from a version on.
func inSteps(text, since string) remedy.Step {
	return remedy.Step{ID: "in-steps", Kind: remedy.Change, Text: text, Since: since, Restart: "the application"}
}

func frameworkFix(n *facts.Node, framework string, s account.Suspect) (fix []remedy.Step) {
	fix = append(fix, frameworkFixes[framework]...)
	if strings.HasPrefix(framework, "Spring") && len(fix) == 0 {
		fix = append(fix, frameworkFixes["Spring Cache"]...)
	}
	if len(fix) == 0 {
		fix = append(fix, inApplication("clear-less", "Find the call of %s behind %s%s: usually one that "+
			"clears, counts or lists everything", framework, format.Name(s.Command),
			caller.FromText(n, []account.Suspect{s})))
	}
	for i := range fix {
		fix[i].Or = i > 0
	}
	if forbid, ok := remedy.Forbid(n, s.Command, caller.UserOf(n, s)); ok {
		fix = append(fix, forbid)
	}
	return fix
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
