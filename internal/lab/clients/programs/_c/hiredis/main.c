/* A client program of the lab (docs/clients.md): hiredis, with a connection for each thread. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include <cjson/cJSON.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tally.h"

enum { BAD_OPTIONS = 2, UNSUPPORTED = 3, CONNECT = 4 };

#define LINE_LIMIT (1 << 20)
#define MOST_ARGS 64

struct command {
	int n;
	const char *args[MOST_ARGS];
};

/* One line of options. The lines before stay, since calls may use them. */
struct options {
	char host[256];
	int port, keys, chain, workers, db;
	double rate;
	bool random;
	const char *password, *name;
	uint64_t dial_timeout, read_timeout, warmup, duration, slice;
	struct command *mix; /* each command as often as its weight */
	int mixed;
};

struct worker {
	int id;
	uint64_t seed;
	redisContext *c;
	const struct options *of; /* with which it was opened */
	struct waits *waits;
};

static _Atomic(const struct options *) now;
static atomic_bool stopping, is_ready;
static atomic_uint_fast64_t dials;

static void fail(int code, const char *what, const char *why)
{
	fprintf(stderr, "%s%s\n", what, why);
	exit(code);
}

static void on_term(int signal)
{
	(void)signal;
	stopping = true;
}

/* A pseudo-random number in [0, 1), by xorshift. */
static double draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)(*state >> 11) / (double)(1ULL << 53);
}

static double json_number(const cJSON *object, const char *name)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(m) ? m->valuedouble : 0;
}

static bool json_true(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static const char *json_text(const cJSON *object, const char *name)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(m) ? m->valuestring : "";
}

static bool read_command(const cJSON *from, struct command *to)
{
	const cJSON *arg;

	cJSON_ArrayForEach(arg, cJSON_GetObjectItemCaseSensitive(from, "args")) {
		if (!cJSON_IsString(arg))
			return false;
		if (to->n < MOST_ARGS)
			to->args[to->n++] = arg->valuestring;
	}
	return to->n > 0;
}

static bool read_mix(const cJSON *commands, struct options *o)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, commands) {
		int weight = fmax(json_number(c, "weight"), 1);
		struct command one = {0};

		if (!read_command(c, &one))
			return false;
		o->mix = realloc(o->mix, sizeof(one) * (size_t)(o->mixed + weight));
		if (!o->mix)
			return false;
		for (int i = 0; i < weight; i++)
			o->mix[o->mixed++] = one;
	}
	return o->mixed > 0;
}

/* Returns NULL for what is no line of options. Ends the program where hiredis cannot do what they say. The options
 * keep texts of the line's JSON, which lives until the program ends. */
static const struct options *parse(const char *line)
{
	const cJSON *v = cJSON_Parse(line);
	struct options *o = calloc(1, sizeof(*o));
	const char *mode, *address, *colon;

	if (!o || strcmp(json_text(v, "schema"), SCHEMA) ||
	    !read_mix(cJSON_GetObjectItemCaseSensitive(v, "commands"), o))
		return NULL;
	address = cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(v, "addresses"), 0));
	if (!address)
		return NULL;
	mode = json_text(v, "mode");
	if (*mode && strcmp(mode, "standalone"))
		fail(UNSUPPORTED, "not supported by hiredis: mode ", mode);
	if (*json_text(v, "listen") || json_true(v, "tls"))
		fail(UNSUPPORTED, "not supported by this program: ", "the HTTP service, or TLS");
	colon = strrchr(address, ':');
	if (!colon)
		return NULL;
	snprintf(o->host, sizeof(o->host), "%.*s", (int)(colon - address), address);
	o->port = atoi(colon + 1);
	o->password = json_text(v, "password");
	o->name = json_text(v, "name");
	o->db = (int)json_number(v, "db");
	o->keys = (int)fmax(json_number(v, "keys"), 1);
	o->chain = (int)fmax(json_number(v, "chain"), 1);
	o->workers = (int)json_number(v, "workers");
	o->rate = json_number(v, "rate_per_second");
	o->random = json_true(v, "random");
	o->dial_timeout = (uint64_t)json_number(v, "dial_timeout_ns");
	o->read_timeout = (uint64_t)json_number(v, "read_timeout_ns");
	o->warmup = (uint64_t)json_number(v, "warmup_ns");
	o->duration = (uint64_t)json_number(v, "duration_ns");
	o->slice = (uint64_t)json_number(v, "slice_ns");
	return o;
}

/* Sends one of the commands of a handshake. */
static bool said(redisContext *c, int n, const char **args)
{
	redisReply *r = redisCommandArgv(c, n, args, NULL);
	bool ok = r && r->type != REDIS_REPLY_ERROR;

	if (r && !ok && !c->err) {
		c->err = REDIS_ERR_OTHER;
		snprintf(c->errstr, sizeof(c->errstr), "%.100s", r->str);
	}
	if (r)
		freeReplyObject(r);
	return ok;
}

static struct timeval timeout_of(uint64_t ns)
{
	return (struct timeval){(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)};
}

/* Opens a connection. It has an error where that fails. */
static redisContext *dial(const struct options *o)
{
	redisContext *c = o->dial_timeout ? redisConnectWithTimeout(o->host, o->port, timeout_of(o->dial_timeout)) :
					    redisConnect(o->host, o->port);
	char db[12];

	dials++;
	if (!c || c->err)
		return c;
	if (o->read_timeout)
		redisSetTimeout(c, timeout_of(o->read_timeout));
	if (*o->password && !said(c, 2, (const char *[]){"AUTH", o->password}))
		return c;
	if (*o->name && !said(c, 3, (const char *[]){"CLIENT", "SETNAME", o->name}))
		return c;
	snprintf(db, sizeof(db), "%d", o->db);
	if (o->db)
		said(c, 2, (const char *[]){"SELECT", db});
	return c;
}

/* Replaces {n} by a number. The result is to be freed if it is not the argument. */
static char *filled(const char *arg, int n)
{
	const char *at = strstr(arg, "{n}");
	char *out;

	if (!at)
		return (char *)arg;
	out = malloc(strlen(arg) + 16);
	if (out)
		sprintf(out, "%.*s%d%s", (int)(at - arg), arg, n, at + 3);
	return out;
}

static const char *kind_of_context(const redisContext *c)
{
	if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT))
		return "timeout";
	if (c->err == REDIS_ERR_IO || c->err == REDIS_ERR_EOF)
		return "connection";
	return "other";
}

/* The first word of an error reply, in capitals. */
static const char *kind_of_reply(const char *text, char *word)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (n < 2 || n >= KIND_LENGTH || (text[n] && text[n] != ' '))
		return "other";
	snprintf(word, KIND_LENGTH, "%.*s", (int)n, text);
	return word;
}

/* Makes one call of the mix and counts it. */
static bool call(struct worker *w, const struct options *o)
{
	const struct command *from = &o->mix[(int)(draw(&w->seed) * o->mixed)];
	struct command with = *from;
	char word[KIND_LENGTH];
	const char *kind = NULL, *text = "";
	redisReply *r = NULL;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < with.n; i++)
		with.args[i] = filled(from->args[i], (int)(draw(&w->seed) * o->keys));
	if (!w->c)
		w->c = dial(o);
	if (w->c && !w->c->err)
		r = redisCommandArgv(w->c, with.n, with.args, NULL);
	if (!w->c || w->c->err)
		kind = w->c ? kind_of_context(w->c) : "other", text = w->c ? w->c->errstr : "no memory";
	else if (r && r->type == REDIS_REPLY_ERROR)
		kind = kind_of_reply(r->str, word), text = r->str;
	tally_add(start, kind, text);
	for (int i = 0; i < with.n; i++)
		if (with.args[i] != from->args[i])
			free((char *)with.args[i]);
	if (r)
		freeReplyObject(r);
	if (w->c && w->c->err) {
		redisFree(w->c);
		w->c = NULL;
	}
	if (!kind && !atomic_exchange(&is_ready, true))
		fprintf(stderr, "ready\n");
	return !kind;
}

/* Makes the calls of a chain, with the options of now. */
static bool operation(struct worker *w)
{
	const struct options *o = now;
	bool ok = true;

	if (w->of != o && w->c) {
		redisFree(w->c);
		w->c = NULL;
	}
	w->of = o;
	for (int i = 0; i < o->chain; i++)
		ok = call(w, o) && ok;
	return ok;
}

/* Waits until a time of CLOCK_MONOTONIC. Returns whether the program goes on. */
static bool wait_until(double at)
{
	const double most = 50e6; /* then it looks whether the program ends */

	while (!stopping) {
		double left = at - (double)clock_ns(CLOCK_MONOTONIC);
		struct timespec t = {0, (long)fmin(left, most)};

		if (left <= 0)
			return true;
		nanosleep(&t, NULL);
	}
	return false;
}

/* A worker that is late does not catch up with a burst: it makes the last operation that is due, and misses those
   before it. */
static void *work(void *arg)
{
	struct worker *w = arg;
	const struct options *o = w->of;
	double gap = o->rate > 0 ? o->workers / o->rate * 1e9 : 0;
	double due = (double)clock_ns(CLOCK_MONOTONIC) + gap * w->id / o->workers;

	while (wait_until(due)) {
		waits_due(w->waits, due);
		if (operation(w))
			waits_succeeded(w->waits);
		due += o->random ? -log(1 - draw(&w->seed)) * gap : gap;
		for (; gap > 0 && (double)clock_ns(CLOCK_MONOTONIC) - due > gap; due += gap)
			waits_due(w->waits, due);
		if (gap == 0)
			due = (double)clock_ns(CLOCK_MONOTONIC);
	}
	return NULL;
}

/* Reads lines until the input or the time is over. Returns the first, and follows the others. */
static const struct options *follow(const struct options *first, uint64_t until)
{
	static char text[LINE_LIMIT + 1];
	static size_t used;
	char *end;

	while (!stopping && (!until || clock_ns(CLOCK_MONOTONIC) < until)) {
		while ((end = memchr(text, '\n', used))) {
			const struct options *o;

			*end = 0;
			o = parse(text);
			used -= (size_t)(end + 1 - text);
			memmove(text, end + 1, used);
			if (!first)
				return o;
			if (o)
				now = o;
			else
				fprintf(stderr, "other options: no JSON of them\n");
		}
		struct pollfd in = {.fd = 0, .events = POLLIN};

		if (poll(&in, 1, 20) > 0) {
			ssize_t n = read(0, text + used, LINE_LIMIT - used);

			if (n <= 0)
				break;
			used += (size_t)n;
		}
	}
	return NULL;
}

int main(void)
{
	const struct options *o = follow(NULL, 0);
	char library[32];
	uint64_t end;

	if (!o || o->workers < 1)
		fail(BAD_OPTIONS, "reading the options from standard input: ", "schema, addresses, commands or workers");
	now = o;
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	signal(SIGPIPE, SIG_IGN);
	struct worker *workers = calloc((size_t)o->workers, sizeof(*workers));
	struct waits *waits = calloc((size_t)o->workers, sizeof(*waits));
	pthread_t *threads = calloc((size_t)o->workers, sizeof(*threads));

	tally.start = clock_ns(CLOCK_MONOTONIC) + o->warmup;
	tally.unix_ns = clock_ns(CLOCK_REALTIME) + o->warmup;
	tally.every = o->slice;
	for (int i = 0; i < o->workers; i++) {
		waits[i].due = malloc(sizeof(*waits[i].due) * WAITS);
		workers[i] = (struct worker){i, 0x9e3779b97f4a7c15ULL * (tally.unix_ns + (uint64_t)i), dial(o), o, &waits[i]};
		if (!workers[i].c || workers[i].c->err)
			fail(CONNECT, "connecting: ", workers[i].c ? workers[i].c->errstr : "no memory");
	}
	for (int i = 0; i < o->workers; i++)
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			fail(1, "starting a thread", "");
	follow(o, o->duration ? tally.start + o->duration : 0);
	stopping = true;
	end = clock_ns(CLOCK_MONOTONIC) + 1000000000; /* a reply may never come */
	for (int i = 0; i < o->workers; i++) {
		uint64_t left = end > clock_ns(CLOCK_MONOTONIC) ? end - clock_ns(CLOCK_MONOTONIC) : 0;
		uint64_t at = clock_ns(CLOCK_REALTIME) + left;
		struct timespec t = {(time_t)(at / 1000000000), (long)(at % 1000000000)};

		pthread_timedjoin_np(threads[i], NULL, &t);
	}
	snprintf(library, sizeof(library), "hiredis %d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	tally_write(library, waits, o->workers, dials, (uint64_t)o->workers);
	_exit(0);
}
