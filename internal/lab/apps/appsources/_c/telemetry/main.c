/* A collector of telemetry on hiredis (docs/apps.md): each report of a device is a pipeline of four commands. */
#include <hiredis/hiredis.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "meter.h"

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

/* Decodes %XX in place. */
static void percent_decode(char *text)
{
	char *to = text;
	unsigned byte;

	for (; *text; text++) {
		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
			*to++ = (char)byte;
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

/* Connects to redis://[:PASSWORD@]HOST:PORT. */
static redisContext *dial(const char *url)
{
	char host[64], password[128] = "";
	int port;
	redisContext *c;
	struct timeval timeout = {5, 0};

	if (sscanf(url, "redis://:%127[^@]@%63[^:]:%d", password, host, &port) != 3) {
		password[0] = 0;
		if (sscanf(url, "redis://%63[^:]:%d", host, &port) != 2) {
			fprintf(stderr, "REDIS_URL is not redis://[:PASSWORD@]HOST:PORT\n");
			exit(1);
		}
	}
	percent_decode(password);
	c = redisConnectWithTimeout(host, port, timeout);
	if (c && !c->err) {
		redisSetTimeout(c, timeout);
		if (password[0])
			freeReplyObject(redisCommand(c, "AUTH %s", password));
	}
	return c;
}

/* Sends one report and reads its replies. Returns NULL, or what went wrong. */
static const char *report(redisContext *c)
{
	const char *error = NULL;
	int device = rand() % 1000;

	redisAppendCommand(c, "HINCRBY device:%d reports 1", device);
	redisAppendCommand(c, "HSET device:%d temperature %d", device, rand() % 40);
	redisAppendCommand(c, "INCR reports:%d", (int)(time(NULL) / 60));
	redisAppendCommand(c, "EXPIRE reports:%d 600", (int)(time(NULL) / 60));
	for (int i = 0; i < 4; i++) {
		redisReply *r;

		if (redisGetReply(c, (void **)&r) != REDIS_OK)
			return c->errstr;
		if (r->type == REDIS_REPLY_ERROR)
			error = "error reply";
		freeReplyObject(r);
	}
	return error;
}

static void pause_for(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

int main(void)
{
	static struct meter meter = {.operation = "report"};
	const char *url = getenv("REDIS_URL");
	double rate = atof(getenv("APP_RATE") ? getenv("APP_RATE") : "10");
	redisContext *c = NULL;

	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	while (!stopping && url) {
		pause_for(-log(1 - rand() / (RAND_MAX + 1.0)) / rate);
		uint64_t start = clock_ns(CLOCK_MONOTONIC);
		const char *error;

		if (c && c->err) {
			redisFree(c);
			c = NULL;
		}
		if (!c)
			c = dial(url);
		if (!c)
			return 1;
		error = c->err ? c->errstr : report(c);
		meter_add(&meter, start, error);
	}
	meter_write(&meter);
	return 0;
}
