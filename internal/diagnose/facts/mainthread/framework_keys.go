package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// frameworkNames are parts of the lib-name by which frameworks are recognised: "jedis(spring-data-redis_v4.0.0)".
var frameworkNames = [][2]string{
	{"spring-data-redis", "Spring Data Redis"},
	{"spring", "Spring"},
	{"quarkus", "Quarkus"},
	{"django", "Django"},
	{"laravel", "Laravel"},
	{"celery", "Celery"},
	{"kombu", "Celery"},
	{"redisvl", "RedisVL"},
	{"langchain", "LangChain"},
	{"bull", "Bull"},
	{"flask", "Flask-Caching"},
}

// FrameworkOf names the framework that sent a command which walks keys: by the form of its pattern in SLOWLOG, by
// entries of its client alone where the client is known, or by the name of its library. It is empty where neither shows
// it.
func FrameworkOf(n *facts.Node, s account.Suspect) string {
	name, _, _ := strings.Cut(s.Command, " ")
	if !walkingCommands[name] {
		return ""
	}
	forms, others := facts.NameCounts{}, 0
	for _, e := range n.Events(recording.SourceServer, recording.KindSlowlog) {
		d := recording.DetailOf[recording.SlowlogDetail](e)
		switch {
		case d.Command != s.Command || s.Client != "" && d.Client != s.Client:
		case d.Framework == "":
			others++
		default:
			forms[d.Framework]++
		}
	}
	if top := forms.Top(1); len(top) > 0 && forms[top[0]] > others {
		return top[0]
	}
	for _, c := range caller.Clients(n) {
		if s.Client == "" || c.Addr != s.Client {
			continue
		}
		for _, f := range frameworkNames {
			if strings.Contains(strings.ToLower(c.LibName), f[0]) {
				return f[1]
			}
		}
	}
	return ""
}

// walkingCommands are the commands that walk the keyspace, or a collection in which a framework keeps its keys.
var walkingCommands = facts.WordSet("KEYS SCAN SMEMBERS HGETALL HKEYS HVALS LRANGE ZRANGE ZRANGEBYSCORE ZREVRANGE " +
	"SUNION SORT")
