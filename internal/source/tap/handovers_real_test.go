//go:build linux

package tap

import (
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"slowpath/internal/house/needs"
)

// pooled is a client in C, since threads of Go do not block for each other: arguments are the port, connections and
// threads. All threads share a pool of these connections; with "own" each has its connection, and the next thread in
// turn is woken after each call. Its lock spins: with a mutex, whoever frees it would wake threads, too.
const pooled = `
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, ROUNDS = 100 };
static char taken;
static sem_t given[MOST], asked;
static int fds[MOST], got[MOST], queue[MOST], conns, threads, own, waiting, idle;

static void lock(void) {
	while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void) {
	__atomic_clear(&taken, __ATOMIC_RELEASE);
}

static int first_in_queue(void) {
	int next = queue[0];
	memmove(queue, queue + 1, --waiting * sizeof(int));
	return next;
}

static void call(int fd) {
	char buf[64];
	if (write(fd, "*1\r\n$4\r\nPING\r\n", 14) != 14 || read(fd, buf, sizeof(buf)) <= 0)
		exit(1);
	usleep(500);
}

static int borrow(int me) {
	lock();
	if (idle) {
		int fd = fds[--idle];
		unlock();
		return fd;
	}
	queue[waiting++] = me;
	unlock();
	sem_wait(&given[me]);
	return got[me];
}

static void give_back(int fd) {
	lock();
	if (!waiting) {
		fds[idle++] = fd;
		unlock();
		return;
	}
	int next = first_in_queue();
	unlock();
	got[next] = fd;
	sem_post(&given[next]);
}

static void *work(void *arg) {
	int me = (int)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (own) {
			sem_wait(&given[me]);
			call(fds[me]);
			sem_post(&given[(me + 1) % threads]);
		} else {
			int fd = borrow(me);
			call(fd);
			give_back(fd);
		}
	}
	return NULL;
}

/* With "loop" one thread for each connection sends and reads for those who ask. */
static void *loop(void *arg) {
	int fd = fds[(long)arg];
	for (;;) {
		sem_wait(&asked);
		lock();
		int next = first_in_queue();
		unlock();
		call(fd);
		sem_post(&given[next]);
	}
	return NULL;
}

static void *ask(void *arg) {
	int me = (int)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		lock();
		queue[waiting++] = me;
		unlock();
		sem_post(&asked);
		sem_wait(&given[me]);
	}
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t all[MOST], loops[MOST];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conns = idle = atoi(argv[2]);
	threads = atoi(argv[3]);
	int looped = argc > 4 && !strcmp(argv[4], "loop");
	own = argc > 4 && !looped;
	for (int i = 0; i < conns; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fds[i], (struct sockaddr *)&to, sizeof(to)))
			return 1;
	}
	sem_init(&asked, 0, 0);
	for (int i = 0; i < threads; i++)
		sem_init(&given[i], 0, own && i == 0);
	for (long i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, looped ? ask : work, (void *)i);
	for (long i = 0; looped && i < conns; i++)
		pthread_create(&loops[i], NULL, loop, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
}
`

// TestHandovers: connections that threads wait for are handed over; those that threads have for themselves are not,
// whoever wakes whom.
func TestHandovers(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.GCC)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "pooled.c"), filepath.Join(dir, "pooled")
	if err := os.WriteFile(source, []byte(pooled), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name   string
		args   []string
		handed bool
		served int // threads for which each connection is used by another one
		strict bool
	}{
		{"a pool that is too small", []string{"2", "8"}, true, -1, false},
		{"one connection for all", []string{"1", "8"}, true, -1, false},
		{"a pool that is too small, parsed at both ends", []string{"2", "8"}, true, -1, true},
		{"as many threads as connections", []string{"8", "8"}, false, 0, false},
		{"threads that wake each other", []string{"8", "8", "own"}, false, -1, false},
		{"an event loop for each connection", []string{"2", "8", "loop"}, false, 8, false},
		{"an event loop, parsed at both ends", []string{"2", "8", "loop"}, false, 8, true},
	} {
		t.Run(c.name, func(t *testing.T) { handovers(t, program, c.args, c.handed, c.served, c.strict) })
	}
}

func handovers(t *testing.T, program string, args []string, want bool, served int, strict bool) {
	port := startServer(t)
	k := constants{}
	if strict {
		k["strict_all"] = uint32(1)
	}
	r := openRaw(t, port, k)
	client := exec.Command(program, append([]string{strconv.Itoa(port)}, args...)...)
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.finish(t)
	var turns, handed, waited, calls uint64
	for _, e := range r.closes {
		if e.Role == roleClient {
			turns, handed, waited, calls = turns+e.Turns, handed+e.Handed, waited+e.WaitedNs, calls+e.Calls
			if k := bits.OnesCount64(e.Served); served >= 0 && k != served {
				t.Errorf("a connection was used for %d threads, want %d", k, served)
			}
		}
	}
	if calls == 0 || want && (handed < turns*7/10 || handed < 300 || waited < handed*500e3) || !want && handed > 0 {
		t.Errorf("%d calls: %d of %d turns handed over after %d ns", calls, handed, turns, waited)
	}
	t.Logf("%d calls: %d of %d turns handed over after %d ns", calls, handed, turns, waited)
}
