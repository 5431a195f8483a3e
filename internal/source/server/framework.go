package server

import (
	"strings"

	"slowpath/internal/wire/resp"
)

// keyForm is the form that a framework gives its keys by default, as its sources have it.
type keyForm struct {
	framework      string
	prefix, suffix string
}

// keyForms: of several that fit the first counts.
var keyForms = []keyForm{
	{"Spring Session", "spring:session:", ""},             // RedisIndexedSessionRepository.DEFAULT_NAMESPACE
	{"Spring Cache", "", "::*"},                           // CacheKeyPrefix.simple(): NAME::KEY, and NAME::* in clear()
	{"Spring Security OAuth", "client_id_to_access:", ""}, // RedisTokenStore
	{"Spring Security OAuth", "uname_to_access:", ""},     //
	{"Flask-Caching", "flask_cache_", ""},                 // RedisCache, CACHE_KEY_PREFIX
	{"Laravel", "laravel_", ""},                           // laravel_database_…, laravel_cache…
	{"connect-redis", "sess:", ""},                        // RedisStore prefix
	{"Bull", "bull:", ""},                                 // Bull and BullMQ
	{"Celery", "_kombu.binding.", ""},                     // kombu's bindings, members of sets
	{"Celery", "celery-task-meta-", ""},                   //
	{"Resque", "resque:", ""},                             //
	{"Hangfire", "hangfire:", ""},                         // {hangfire}: in a cluster
	{"Hangfire", "{hangfire}:", ""},                       //
	// KEY_PREFIX:VERSION:KEY, with the default prefix and version
	{"Django", ":1:", ""},
	{"Redisson", "redisson_", ""},  // its locks, topics, timeouts
	{"Redisson", "redisson__", ""}, //
}

// frameworkOf names the framework whose default form the first key or pattern of a command has; empty where there is
// none. Of SCAN … MATCH the pattern is examined.
func frameworkOf(command string, args []resp.Value) string {
	at := 1
	if command == "SCAN" {
		for i := 2; i+1 < len(args); i++ {
			if strings.EqualFold(args[i].Text(), "MATCH") {
				at = i + 1
			}
		}
	}
	if at >= len(args) || containers[command] {
		return ""
	}
	key := args[at].Text()
	for _, f := range keyForms {
		if strings.HasPrefix(key, f.prefix) && strings.HasSuffix(key, f.suffix) {
			return f.framework
		}
	}
	return ""
}
