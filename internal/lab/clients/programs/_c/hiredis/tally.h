/* Counts calls and operations, and writes the summary of docs/clients.md. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define SCHEMA "slowpath.client/v1"
#define KEPT_BITS 8
#define BUCKETS ((64 - KEPT_BITS + 2) << (KEPT_BITS - 1))
#define KINDS 32
#define KIND_LENGTH 21
#define ERROR_LIMIT 200
#define SECONDS 86400
#define SLICES 12000
#define WAITS 65536

struct second {
	uint64_t calls, errors;
};

struct slice {
	uint64_t operations, failed, ns, max_ns;
};

/* When the operations of one worker were due that have no result. */
struct waits {
	uint64_t *due;
	size_t n;
};

static struct tally {
	pthread_mutex_t lock;
	uint64_t start, unix_ns, every; /* start is of CLOCK_MONOTONIC; every is the length of a slice */
	uint64_t calls, errors, max, buckets[BUCKETS], kinds[KINDS];
	size_t seconds_used, slices_used;
	char kind_names[KINDS][KIND_LENGTH], last_error[ERROR_LIMIT];
	struct second seconds[SECONDS];
	struct slice slices[SLICES];
} tally = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The eight leading binary digits of a duration are kept. Buckets are numbered in the order of their values. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned bits = ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;
	unsigned shift = bits > KEPT_BITS ? bits - KEPT_BITS : 0;

	return (shift << (KEPT_BITS - 1)) + (unsigned)(ns >> shift);
}

static uint64_t bucket_value(uint64_t i)
{
	uint64_t shift = i >> (KEPT_BITS - 1);

	shift = shift ? shift - 1 : 0;
	return (i - (shift << (KEPT_BITS - 1))) << shift;
}

static void count_error(const char *kind, const char *text)
{
	int i = 0;

	tally.errors++;
	while (i < KINDS - 1 && tally.kind_names[i][0] && strcmp(tally.kind_names[i], kind))
		i++;
	if (!tally.kind_names[i][0])
		snprintf(tally.kind_names[i], KIND_LENGTH, "%s", i < KINDS - 1 ? kind : "other");
	tally.kinds[i]++;
	snprintf(tally.last_error, ERROR_LIMIT, "%s", text);
	for (char *c = tally.last_error; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = ' ';
}

/* Counts a call that ends now, unless it began before the start. The kind is NULL if it succeeded. */
static void tally_add(uint64_t start, const char *kind, const char *text)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC), second;

	if (start < tally.start || (second = (end - tally.start) / 1000000000) >= SECONDS)
		return;
	pthread_mutex_lock(&tally.lock);
	tally.calls++;
	tally.buckets[bucket_of(end - start)]++;
	if (end - start > tally.max)
		tally.max = end - start;
	if (second >= tally.seconds_used)
		tally.seconds_used = second + 1;
	tally.seconds[second].calls++;
	if (kind) {
		tally.seconds[second].errors++;
		count_error(kind, text);
	}
	pthread_mutex_unlock(&tally.lock);
}

static void waits_due(struct waits *w, double at)
{
	pthread_mutex_lock(&tally.lock);
	if (tally.every && w->n < WAITS)
		w->due[w->n++] = (uint64_t)at;
	pthread_mutex_unlock(&tally.lock);
}

/* Counts all operations that wait; the first of them failed. */
static void waits_end(struct waits *w, size_t failed)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < w->n; i++) {
		uint64_t due = w->due[i], k = tally.every && due >= tally.start ? (due - tally.start) / tally.every : SLICES;
		uint64_t took = now > due ? now - due : 0;

		if (k >= SLICES)
			continue;
		if (k >= tally.slices_used)
			tally.slices_used = k + 1;
		tally.slices[k].operations++;
		tally.slices[k].failed += i < failed;
		tally.slices[k].ns += took;
		if (took > tally.slices[k].max_ns)
			tally.slices[k].max_ns = took;
	}
	w->n = 0;
}

static void waits_succeeded(struct waits *w)
{
	pthread_mutex_lock(&tally.lock);
	if (w->n)
		waits_end(w, w->n - 1);
	pthread_mutex_unlock(&tally.lock);
}

/* Writes the summary. Operations that still wait have failed. */
static void tally_write(const char *library, struct waits *waits, int workers, uint64_t dials, uint64_t connections)
{
	const char *comma = "";
	struct rusage use;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	getrusage(RUSAGE_SELF, &use);
	pthread_mutex_lock(&tally.lock);
	for (int i = 0; i < workers; i++)
		waits_end(&waits[i], waits[i].n);
	printf("{\"schema\":\"" SCHEMA "\",\"library\":\"%s\",\"calls\":%" PRIu64 ",\"errors\":%" PRIu64
	       ",\"last_error\":\"%s\",\"start_unix_ns\":%" PRIu64 ",\"ran_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64
	       ",\"cpu_ns\":%" PRIu64 ",\"dials\":%" PRIu64 ",\"pool\":{\"connections\":%" PRIu64
	       ",\"idle\":0},\"errors_by_kind\":{",
	       library, tally.calls, tally.errors, tally.last_error, tally.unix_ns,
	       now > tally.start ? now - tally.start : 0, tally.max,
	       ((uint64_t)use.ru_utime.tv_sec + (uint64_t)use.ru_stime.tv_sec) * 1000000000 +
		       ((uint64_t)use.ru_utime.tv_usec + (uint64_t)use.ru_stime.tv_usec) * 1000,
	       dials, connections);
	for (int i = 0; i < KINDS && tally.kind_names[i][0]; i++, comma = ",")
		printf("%s\"%s\":%" PRIu64, comma, tally.kind_names[i], tally.kinds[i]);
	printf("},\"histogram\":[");
	comma = "";
	for (uint64_t i = 0; i < BUCKETS; i++) {
		if (tally.buckets[i]) {
			printf("%s[%" PRIu64 ",%" PRIu64 "]", comma, bucket_value(i), tally.buckets[i]);
			comma = ",";
		}
	}
	printf("],\"per_second\":[");
	for (size_t i = 0; i < tally.seconds_used; i++)
		printf("%s{\"calls\":%" PRIu64 ",\"errors\":%" PRIu64 "}", i ? "," : "", tally.seconds[i].calls,
		       tally.seconds[i].errors);
	printf("],\"slices\":[");
	for (size_t i = 0; i < tally.slices_used; i++)
		printf("%s{\"operations\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"max_ns\":%" PRIu64 "}",
		       i ? "," : "", tally.slices[i].operations, tally.slices[i].failed, tally.slices[i].ns,
		       tally.slices[i].max_ns);
	printf("]}\n");
	fflush(stdout);
}
