package apps

import "slowpath/internal/lab/toolchain"

// catalogue is in the order in which applications are listed. The versions are those of the lock files of the sources;
// a test checks that.
var catalogue = []App{
	{
		Name: "celery", Title: "task queue: a worker of two processes, and tasks whose results are waited for",
		Language: "Python", Libraries: "celery 5.7.0, kombu 5.7.0, redis-py 8.1.0",
		Commands: "LPUSH, BRPOP, MULTI, PUBLISH, SUBSCRIBE, SETEX, GET", Rate: 20, TLS: true,
		recipe: python([]string{
			"-m", "celery", "-A", "shop", "worker", "--concurrency", "2", "--loglevel", "WARNING",
		}, []string{"web.py"}),
	},
	{
		Name: "rq", Title: "task queue: a worker that forks for each job, and jobs whose results are waited for",
		Language: "Python", Libraries: "rq 3.0.0, redis-py 8.1.0",
		Commands: "BLMOVE, HSET, EXPIRE, MULTI, WATCH, ZADD, XADD, XREAD BLOCK", Rate: 3, TLS: true,
		recipe: python([]string{"worker.py"}, []string{"web.py"}),
	},
	{
		Name: "huey", Title: "task queue: a consumer of four threads, and tasks whose results are waited for",
		Language: "Python", Libraries: "huey 3.5.4, redis-py 8.1.0",
		Commands: "LPUSH, BRPOP, HSET, HGET, HDEL, MULTI", Rate: 20, TLS: true,
		recipe: python([]string{"-m", "huey.bin.huey_consumer", "tasks.huey", "-w", "4", "-q"}, []string{"web.py"}),
	},
	{
		Name: "dramatiq", Title: "task queue: a worker of four threads, and messages whose results are waited for",
		Language: "Python", Libraries: "dramatiq 2.2.1, redis-py 8.1.0",
		Commands: "EVALSHA, MULTI, LPUSH, BRPOPLPUSH", Rate: 20, TLS: true,
		recipe: python([]string{"-m", "dramatiq", "tasks", "--processes", "1", "--threads", "4"}, []string{"web.py"}),
	},
	{
		Name: "django", Title: "site in gunicorn: sessions and cache of Django",
		Language: "Python", Libraries: "django 5.2.19, redis-py 8.1.0, gunicorn 27.0.1",
		Commands: "GET, SET, MGET, EXISTS, INCRBY", Rate: 50, Web: true, Twemproxy: true, TLS: true,
		recipe: gunicorn("site_of_shop"),
	},
	{
		Name: "bullmq", Title: "task queue: a worker, and jobs whose results are waited for",
		Language: "JavaScript", Libraries: "bullmq 6.7.0, ioredis 6.0.0",
		Commands: "EVALSHA, BZPOPMIN, XREAD BLOCK", Rate: 50, TLS: true,
		recipe: node("worker.mjs", "web.mjs"),
	},
	{
		Name: "express-session", Title: "site on Express: sessions",
		Language: "JavaScript", Libraries: "express-session 1.19.0, connect-redis 9.0.0, node-redis 6.3.1",
		Commands: "GET, SET", Rate: 50, Web: true, TLS: true,
		recipe: node("main.mjs"),
	},
	{
		Name: "rate-limiter", Title: "API on Express: limits the requests of users, and caches answers",
		Language: "JavaScript", Libraries: "rate-limiter-flexible 11.4.0, ioredis 6.0.0",
		Commands: "EVALSHA, GET, SET", Rate: 50, Web: true, Twemproxy: true, TLS: true,
		recipe: node("main.mjs"),
	},
	{
		Name: "socket.io", Title: "chat: two servers that pass messages on to each other",
		Language: "JavaScript", Libraries: "socket.io 4.8.4, @socket.io/redis-adapter 8.3.0, node-redis 6.3.1",
		Commands: "PUBLISH, SUBSCRIBE, PSUBSCRIBE", Rate: 50, TLS: true,
		recipe: node("main.mjs"),
	},
	{
		Name: "sidekiq", Title: "task queue: a worker of five threads, and jobs that nobody waits for",
		Language: "Ruby", Libraries: "sidekiq, ruby-redis (Debian)",
		Commands: "LPUSH, BRPOP, SADD, MULTI", Rate: 50, TLS: true,
		recipe: sidekiq,
	},
	{
		Name: "rails-cache", Title: "site in puma: the cache of Rails",
		Language: "Ruby", Libraries: "activesupport, ruby-redis, puma (Debian)",
		Commands: "MGET, GET, SET, INCRBY, TTL", Rate: 50, Web: true, Twemproxy: true,
		recipe: puma,
	},
	{
		Name: "php-session", Title: "site in PHP: sessions, over a connection that each PHP process keeps",
		Language: "PHP", Libraries: "phpredis (Debian)",
		Commands: "GET, SETEX, ECHO", Rate: 50, Web: true, Twemproxy: true,
		recipe: php("exit(extension_loaded('redis') ? 0 : 1);", "php-cli php-redis"),
	},
	{
		Name: "symfony-cache", Title: "site in PHP: the cache of Symfony, over a new connection for each page",
		Language: "PHP", Libraries: "symfony-cache, predis (Debian)",
		Commands: "MGET, SETEX", Rate: 30, Web: true, Twemproxy: true,
		recipe: php("require 'Symfony/Component/Cache/autoload.php'; require 'Predis/Autoloader.php';",
			"php-cli php-symfony-cache php-predis"),
	},
	{
		Name: "spring-session", Title: "site on Spring Boot: Spring Session and Spring's cache",
		Language: "Java", Libraries: "spring-boot 3.5.7, spring-session 3.5.3, lettuce 6.6.0",
		Commands: "HGETALL, HMSET, PEXPIREAT, EXISTS, GET, SET", Rate: 50, Web: true,
		recipe: java,
	},
	{
		Name: "redisson", Title: "booking service: distributed locks and a map",
		Language: "Java", Libraries: "redisson 3.23.5",
		Commands: "EVALSHA, HGET, PING, SUBSCRIBE", Rate: 50, Pool: true,
		recipe: java,
	},
	{
		Name: "asynq", Title: "task queue: a worker, and tasks that nobody waits for",
		Language: "Go", Libraries: "asynq 0.26.0, go-redis 9.14.1",
		Commands: "EVALSHA, SUBSCRIBE", Rate: 50, TLS: true,
		recipe: golang("asynq"),
	},
	{
		Name: "redis-rate", Title: "API: limits the requests of users, and caches answers",
		Language: "Go", Libraries: "redis_rate 10.0.1, go-redis 9.23.0",
		Commands: "EVALSHA, GET, SET", Rate: 50, Web: true, TLS: true,
		recipe: golang("redis-rate"),
	},
	{
		Name: "redsync", Title: "booking service: distributed locks",
		Language: "Go", Libraries: "redsync 4.18.1, go-redis 9.23.0",
		Commands: "SET NX, EVALSHA, HINCRBY, LPUSH", Rate: 50, TLS: true,
		recipe: golang("redsync"),
	},
	{
		Name: "leaderboard", Title: "leaderboard of a game: scores, the best, and ranks, in pipelines",
		Language: "Go", Libraries: "redigo 1.9.3",
		Commands: "ZINCRBY, ZREVRANGE, ZREVRANK, ZCARD", Rate: 300, Twemproxy: true, TLS: true,
		recipe: golang("leaderboard"),
	},
	{
		Name: "orders", Title: "stream of orders: three consumers of a group",
		Language: "Rust", Libraries: "deadpool-redis 0.22.0, redis-rs 0.32.7",
		Commands: "XADD, XREADGROUP BLOCK, XACK, INCRBY, UNWATCH, PING", Rate: 100,
		recipe: binary(toolchain.Cargo, "_rust", "orders"),
	},
	{
		Name: "telemetry", Title: "collector of telemetry: pipelines of four commands on one connection",
		Language: "C", Libraries: "hiredis (Debian)",
		Commands: "HINCRBY, HSET, INCR, EXPIRE", Rate: 200, Twemproxy: true,
		recipe: binary(toolchain.HiredisC, "_c", "telemetry"),
	},
}
