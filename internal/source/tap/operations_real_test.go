//go:build linux

package tap

import (
	"cmp"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// callers are programs whose threads wait longer than their calls take: the argument is the server's port. Each makes
// so many calls that those before it is known who asks are few.
var callers = map[string]string{
	"an event loop that is elsewhere": `
import asyncio, sys, threading, time
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
class Conn:
    async def open(self):
        self.r, self.w = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    async def ping(self):
        self.w.write(b"*1\r\n$4\r\nPING\r\n")
        return await self.r.readline()
conns = [Conn() for _ in range(2)]
for c in conns: asyncio.run_coroutine_threadsafe(c.open(), loop).result()
def work(c):
    for _ in range(400):
        asyncio.run_coroutine_threadsafe(c.ping(), loop).result()
        time.sleep(.002)
threads = [threading.Thread(target=work, args=(c,)) for c in conns]
for t in threads: t.start()
for _ in range(8):
    time.sleep(.2)
    loop.call_soon_threadsafe(time.sleep, .05)
for t in threads: t.join()
`,
	"a connection behind a lock": `
import socket, sys, threading, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
lock = threading.Lock()
def work():
    for _ in range(30):
        with lock:
            s.sendall(b"*1\r\n$4\r\nPING\r\n")
            s.recv(64)
            time.sleep(.005)
        time.sleep(.001)
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
`,
	"a dead address first": `
import socket, sys, time
full = socket.socket()
full.bind(("127.0.0.7", int(sys.argv[1])))
full.listen(0)
fill = socket.create_connection(("127.0.0.7", int(sys.argv[1])))
for _ in range(3):
    try: socket.create_connection(("127.0.0.7", int(sys.argv[1])), timeout=.05).close()
    except OSError: pass
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    s.recv(64)
    s.close()
`,
	"polls": `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(100): # a server that is preempted on its way out of a send has not been seen to reply by the read
    s.sendall(b"*2\r\n$6\r\nEXISTS\r\n$4\r\nlock\r\n")
    s.recv(64)
    time.sleep(.003)
`,
	"other services": `
import os, socket, sys, time
listener = socket.create_server(("127.0.0.9", 5432))
pair = socket.socketpair()
if os.fork() == 0:
    pair[0].close()
    c = listener.accept()[0]
    while c.recv(64):
        time.sleep(.004)
        c.sendall(b"row")
        pair[1].recv(64)
        time.sleep(.002)
        pair[1].sendall(b"row")
    os._exit(0)
pair[1].close()
db = socket.create_connection(("127.0.0.9", 5432))
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(20):
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    s.recv(64)
    for other in db, pair[0]:
        other.sendall(b"?")
        other.recv(64)
    time.sleep(.003)
`,
	"other services of an event loop": `
import asyncio, socket, sys
async def serve(r, w):
    while await r.readline():
        await asyncio.sleep(.004)
        w.write(b"row\n")
async def ask(port, request, times, host):
    r, w = await asyncio.open_connection(host, port)
    for _ in range(times):
        w.write(request)
        await r.readline()
async def main():
    listener = socket.socket()
    for port in range(65535, 61000, -1): # above those of callers: which end is the service is known otherwise
        try: listener.bind(("127.0.0.9", port))
        except OSError: continue
        break
    await asyncio.start_server(serve, sock=listener)
    redis = ask(int(sys.argv[1]), b"*1\r\n$4\r\nPING\r\n", 200, "127.0.0.1")
    await asyncio.gather(redis, *[ask(port, b"?\n", 10, "127.0.0.9") for _ in range(3)])
asyncio.run(main())
`,
	"workers that share an epoll": `
import select, socket, sys, threading
events, parked = select.epoll(), threading.Event()
def work(awaits):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for _ in range(20):
        s.sendall(b"*1\r\n$4\r\nPING\r\n")
        s.recv(64)
        events.poll(.002)
        awaits(.02)
threads = [threading.Thread(target=work, args=(f,)) for f in (parked.wait, events.poll)]
for t in threads: t.start()
for t in threads: t.join(60)
threading.Event().wait(.2)
`,
	"a lock that processes share": `
import multiprocessing, socket, sys, time
lock = multiprocessing.get_context("fork").Lock()
other = multiprocessing.get_context("fork").Event()
def hold():
    other.set()
    for _ in range(20):
        with lock: time.sleep(.006)
        time.sleep(.002)
multiprocessing.get_context("fork").Process(target=hold).start()
other.wait()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(20):
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    s.recv(64)
    with lock: pass
    time.sleep(.001)
`,
	"an interpreter's lock after the reply": `
import socket, sys, threading, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
done = False
def compute():
    while not done: sum(range(1000))
t = threading.Thread(target=compute)
t.start()
script = b"for i = 1, 500000 do end" # meanwhile the other thread has the lock
for _ in range(100):
    s.sendall(b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(script), script))
    s.recv(64)
    time.sleep(.001)
done = True
t.join()
`,
	"a log that does not answer": `
import select, socket, sys, time, os
listener, calls = socket.create_server(("127.0.0.9", 5432)), socket.create_server(("127.0.0.9", 5433))
if os.fork() == 0:
    c = socket.create_connection(("127.0.0.9", 5433))
    for _ in range(20):
        time.sleep(.004)
        c.sendall(b"do")
        c.recv(64)
    os._exit(0)
log, stats = socket.create_connection(("127.0.0.9", 5432)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asks = calls.accept()[0]
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(20):
    select.select([asks], [], [])
    asks.recv(64)
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    s.recv(64)
    asks.sendall(b"done")
    log.sendall(b"line")
    stats.sendto(b"calls:1|c", ("127.0.0.9", 8125))
`,
	"a pipe that is read slowly": `
import fcntl, os, socket, sys, time
out = os.pipe()
if os.fork() == 0:
    os.close(out[1])
    while os.read(out[0], 4096):
        time.sleep(.002)
    os._exit(0)
fcntl.fcntl(out[1], 1031, 4096)
os.dup2(out[1], 1)
logs = socket.create_server(("127.0.0.9", 5434))
log = socket.create_connection(("127.0.0.9", 5434))
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(20):
    s.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    s.recv(64)
    log.sendall(b"line")
    os.write(1, b"x" * 8192)
`,
	"other keys": `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for i in range(20):
    s.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nk%02d\r\n" % i)
    s.recv(64)
    time.sleep(.003)
`,
}

// TestOperations: what a thread waited for around its calls.
func TestOperations(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.Python)
	for name, check := range map[string]func(*testing.T, *recording.Recording, recording.ThreadWaits){
		"an event loop that is elsewhere": func(t *testing.T, rec *recording.Recording, w recording.ThreadWaits) {
			ns, where := waitsBefore(rec, recording.Client, recording.LoopWait)
			if ns < int64(25*time.Millisecond) || !strings.Contains(where, recording.AsleepIn) {
				t.Errorf("the longest wait for the loop was %v, in %q", time.Duration(ns), where)
			}
			if w.LoopNs < ns || w.Stalls < 5 || w.StallMax < int64(45*time.Millisecond) || w.StallsNs < 2*w.StallMax {
				t.Errorf("all waits: %+v", w)
			}
		},
		"a connection behind a lock": func(t *testing.T, rec *recording.Recording, w recording.ThreadWaits) {
			if ns, _ := waitsBefore(rec, recording.App, recording.PoolWait); ns < int64(10*time.Millisecond) {
				t.Errorf("the longest wait for the connection was %v", time.Duration(ns))
			}
			if w.LockNs < int64(time.Second) {
				t.Errorf("all waits: %+v", w)
			}
		},
		"a dead address first": func(t *testing.T, rec *recording.Recording, w recording.ThreadWaits) {
			ns, where := waitsBefore(rec, recording.App, recording.Dial)
			if ns < int64(45*time.Millisecond) || !strings.HasPrefix(where, recording.NoAnswerFrom+"127.0.0.7:") {
				t.Errorf("the longest dial took %v: %q", time.Duration(ns), where)
			}
			if w.DialNs == 0 {
				t.Errorf("all waits: %+v", w)
			}
		},
		"polls": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			if w.Polls < 15 || w.PollsNs < int64(40*time.Millisecond) || w.PollOp != "EXISTS" {
				t.Errorf("all waits: %+v", w)
			}
		},
		"other services": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			w.Outside = slices.DeleteFunc(w.Outside, func(w recording.WaitsFor) bool { return w.Address == "" })
			named := len(w.Outside) == 2 && w.Outside[0].Address == "127.0.0.9:5432" && w.Outside[0].Waits >= 15 &&
				w.Outside[1].Address == recording.UnixPeer && w.Outside[1].Waits >= 15
			if !named || w.PeersNs < int64(100*time.Millisecond) || w.PeersNs != w.Outside[0].Ns+w.Outside[1].Ns {
				t.Errorf("all waits: %+v", w)
			}
			if w.Polls != 0 {
				t.Errorf("it polls: %+v", w)
			}
		},
		"other services of an event loop": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			if len(w.Asked) != 1 || !strings.HasPrefix(w.Asked[0].Address, "127.0.0.9:") || w.Asked[0].Waits < 20 ||
				w.Asked[0].Ns < w.Asked[0].Waits*int64(4*time.Millisecond) || w.PeersNs > 0 {
				t.Errorf("all waits: %+v", w)
			}
		},
		"workers that share an epoll": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			if w.Stalls != 0 || w.StallsNs != 0 || w.StallMax != 0 || w.EventsNs == 0 {
				t.Errorf("all waits: %+v", w)
			}
		},
		"a lock that processes share": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			const call = "futex, for a lock that python3["
			i := slices.IndexFunc(w.Outside, func(w recording.WaitsFor) bool {
				return strings.HasPrefix(w.Call, call)
			})
			if i < 0 || w.Outside[i].Waits < 5 || w.Outside[i].Ns < int64(20*time.Millisecond) ||
				w.OthersNs < w.Outside[i].Ns {
				t.Errorf("all waits: %+v", w)
			}
		},
		"an interpreter's lock after the reply": func(t *testing.T, rec *recording.Recording, w recording.ThreadWaits) {
			longer := map[string]int64{} // the medians of calls, and with the lock after them
			for _, h := range rec.HistogramSums(recording.SourceTap) {
				if h.Sum.TotalCount() >= 20 {
					longer[h.Op] = h.Sum.ValueAtQuantile(50)
				}
			}
			// where the thread got the lock only after the reply had come, it read that at once: then the call has it
			seen := cmp.Or(longer[recording.Operations+" EVAL"], longer[recording.Client+" EVAL"])
			lock := seen - longer[recording.Server+" EVAL"]
			if lock < int64(3*time.Millisecond) || w.LockNs < 100*int64(time.Millisecond) {
				t.Errorf("medians: %v; all: %+v", longer, w)
			}
		},
		"a log that does not answer": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			if w.PeersNs > int64(15*time.Millisecond) || w.EventsNs < int64(40*time.Millisecond) {
				t.Errorf("all waits: %+v", w)
			}
		},
		"a pipe that is read slowly": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			const call = "write to its standard output, a pipe that python3["
			if len(w.Outside) == 0 || !strings.HasPrefix(w.Outside[0].Call, call) ||
				w.Outside[0].Waits < 15 || w.Outside[0].Ns > w.OthersNs || w.PeersNs != 0 {
				t.Errorf("all waits: %+v", w)
			}
		},
		"other keys": func(t *testing.T, _ *recording.Recording, w recording.ThreadWaits) {
			if w.Polls != 0 || w.TimerNs < int64(40*time.Millisecond) {
				t.Errorf("all waits: %+v", w)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := serverAt(t, onePort(t, 1))
			w := watchTaped(t, Options{Nodes: []Node{n}, Slow: 5 * time.Millisecond})
			client := exec.Command("python3", "-c", callers[name], strconv.Itoa(n.Port))
			if out, err := client.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			w.stop(t)
			rec := w.rec
			rec.Index()
			body, ok := rec.SnapshotOf(recording.SourceTap, recording.ProcessPrefix+itoa(client.Process.Pid),
				recording.SnapshotWaits)
			if !ok {
				t.Fatal("nothing is known of the threads of the client")
			}
			check(t, rec, recording.ThreadWaitsOf(body.Body))
		})
	}
}

// eager reads replies while the server is still in its send, sleeps after each call, and prints how long the longest
// one took, in nanoseconds.
const eager = `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.setblocking(False)
worst = 0
for _ in range(300):
    begin = time.monotonic_ns()
    s.send(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    while True:
        try: s.recv(64)
        except BlockingIOError: continue
        break
    worst = max(worst, time.monotonic_ns() - begin)
    time.sleep(.012)
print(worst)
`

// TestEagerReads: a reply that was read before the server had published it is no longer waited for. No call seems to
// take longer than its client says.
func TestEagerReads(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.Python)
	n := serverAt(t, onePort(t, 1))
	w := watchTaped(t, Options{Nodes: []Node{n}, Slow: 5 * time.Millisecond})
	out, err := exec.Command("python3", "-c", eager, strconv.Itoa(n.Port)).Output()
	if err != nil {
		t.Fatal(err)
	}
	worst, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w.stop(t)
	w.rec.Index()
	calls := int64(0)
	for _, h := range w.rec.HistogramSums(recording.SourceTap) {
		if h.Op == recording.Client+" GET" {
			calls = h.Sum.TotalCount()
			if got := h.Sum.Max(); got > worst+int64(6*time.Millisecond) {
				t.Errorf("the longest call took %v, and its client says %v", time.Duration(got), time.Duration(worst))
			}
		}
	}
	if calls < 250 {
		t.Errorf("%d calls were seen", calls)
	}
}

// waitsBefore is the longest part of a call in a state before its request was sent, in nanoseconds, and what was waited
// for.
func waitsBefore(rec *recording.Recording, actor, state string) (ns int64, where string) {
	for _, c := range rec.Calls {
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.Actor == actor && s.State == state && s.ToNs <= c.StartNs && s.ToNs-s.FromNs > ns {
				ns, where = s.ToNs-s.FromNs, s.Culprit
			}
		}
	}
	return ns, where
}
