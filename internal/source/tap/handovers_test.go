//go:build linux

package tap

import (
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// pooled is a client in C, since threads of Go do not block for each other: arguments are the port, connections and
// threads. All threads share a pool of these connections; with "own" each has its connection, and the next thread in
// turn is woken after each call.
const pooled = `
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, ROUNDS = 100 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given[MOST];
static int fds[MOST], got[MOST], queue[MOST], conns, threads, own, waiting, idle, turn;

static void call(int fd) {
	char buf[64];
	if (write(fd, "*1\r\n$4\r\nPING\r\n", 14) != 14 || read(fd, buf, sizeof(buf)) <= 0)
		exit(1);
	usleep(500);
}

static int borrow(int me) {
	pthread_mutex_lock(&lock);
	if (idle) {
		got[me] = fds[--idle];
	} else {
		got[me] = -1;
		queue[waiting++] = me;
		while (got[me] < 0)
			pthread_cond_wait(&given[me], &lock);
	}
	pthread_mutex_unlock(&lock);
	return got[me];
}

static void give_back(int fd) {
	int next = -1;
	pthread_mutex_lock(&lock);
	if (waiting) {
		next = queue[0];
		memmove(queue, queue + 1, --waiting * sizeof(int));
		got[next] = fd;
	} else {
		fds[idle++] = fd;
	}
	pthread_mutex_unlock(&lock);
	if (next >= 0)
		pthread_cond_signal(&given[next]);
}

static void own_turn(int me) {
	pthread_mutex_lock(&lock);
	while (turn != me)
		pthread_cond_wait(&given[me], &lock);
	pthread_mutex_unlock(&lock);
	call(fds[me]);
	pthread_mutex_lock(&lock);
	turn = (me + 1) % threads;
	pthread_mutex_unlock(&lock);
	pthread_cond_signal(&given[(me + 1) % threads]);
}

static void *work(void *arg) {
	int me = (int)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (own) {
			own_turn(me);
		} else {
			int fd = borrow(me);
			call(fd);
			give_back(fd);
		}
	}
	return NULL;
}

/* With "loop" one thread for each connection sends and reads for those who ask. */
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;

static void *loop(void *arg) {
	int fd = fds[(long)arg];
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!waiting)
			pthread_cond_wait(&asked, &lock);
		int next = queue[0];
		memmove(queue, queue + 1, --waiting * sizeof(int));
		pthread_mutex_unlock(&lock);
		call(fd);
		pthread_mutex_lock(&lock);
		got[next] = 1;
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&given[next]);
	}
	return NULL;
}

static void *ask(void *arg) {
	int me = (int)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		got[me] = 0;
		queue[waiting++] = me;
		pthread_cond_signal(&asked);
		while (!got[me])
			pthread_cond_wait(&given[me], &lock);
		pthread_mutex_unlock(&lock);
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
	for (long i = 0; i < threads; i++) {
		pthread_cond_init(&given[i], NULL);
		pthread_create(&all[i], NULL, looped ? ask : work, (void *)i);
	}
	for (long i = 0; looped && i < conns; i++)
		pthread_create(&loops[i], NULL, loop, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
}
`

// TestHandovers: connections that threads wait for are handed over; those that threads have for themselves are not,
// whoever wakes whom.
func TestHandovers(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "pooled.c"), filepath.Join(dir, "pooled")
	if err := os.WriteFile(source, []byte(pooled), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-O1", "-pthread", "-o", program, source).CombinedOutput(); err != nil {
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
