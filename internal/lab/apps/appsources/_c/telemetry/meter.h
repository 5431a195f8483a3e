/* Counts what the application does, and reports it as lines of JSON once per second (docs/apps.md). */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SCHEMA "slowpath.app/v1"
#define KEPT_BITS 8
#define BUCKETS ((64 - KEPT_BITS + 2) << (KEPT_BITS - 1))
#define ERROR_LIMIT 200

struct meter {
	const char *operation;
	uint64_t unix_second, done, errors, sum, max, histogram[BUCKETS];
	char last_error[ERROR_LIMIT];
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The eight leading binary digits of a duration are kept. Buckets are numbered in the order of their values. */
static unsigned meter_shift(uint64_t ns)
{
	unsigned bits = ns ? 64 - __builtin_clzll(ns) : 0;

	return bits > KEPT_BITS ? bits - KEPT_BITS : 0;
}

static void meter_write(struct meter *m)
{
	const char *comma = "";

	if (!m->done)
		return;
	printf("{\"schema\":\"" SCHEMA "\",\"operation\":\"%s\",\"unix_second\":%" PRIu64 ",\"done\":%" PRIu64
	       ",\"errors\":%" PRIu64 ",\"sum_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64
	       ",\"last_error\":\"%s\",\"histogram\":[",
	       m->operation, m->unix_second, m->done, m->errors, m->sum, m->max, m->last_error);
	for (uint64_t i = 0; i < BUCKETS; i++) {
		uint64_t shift = i >> (KEPT_BITS - 1);

		shift = shift ? shift - 1 : 0;
		if (m->histogram[i]) {
			printf("%s[%" PRIu64 ",%" PRIu64 "]", comma,
			       (i - (shift << (KEPT_BITS - 1))) << shift, m->histogram[i]);
			comma = ",";
		}
	}
	printf("]}\n");
	fflush(stdout);
	memset(&m->unix_second, 0, sizeof(*m) - sizeof(m->operation));
}

/* Counts an operation that began at a time of CLOCK_MONOTONIC and ends now. The error is NULL if there is none. */
static void meter_add(struct meter *m, uint64_t start, const char *error)
{
	uint64_t took = clock_ns(CLOCK_MONOTONIC) - start;
	uint64_t now = clock_ns(CLOCK_REALTIME) / 1000000000;
	unsigned shift = meter_shift(took);

	if (now != m->unix_second)
		meter_write(m);
	m->unix_second = now;
	m->done++;
	m->sum += took;
	if (took > m->max)
		m->max = took;
	m->histogram[((uint64_t)shift << (KEPT_BITS - 1)) + (took >> shift)]++;
	if (!error)
		return;
	m->errors++;
	snprintf(m->last_error, sizeof(m->last_error), "%s", error);
	for (char *c = m->last_error; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = ' ';
}
