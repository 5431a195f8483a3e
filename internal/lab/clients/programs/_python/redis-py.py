"""A client program of the lab (docs/clients.md): redis-py with threads, as in a web server."""

import concurrent.futures
import http.server
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, LoadBalancingStrategy, RedisCluster
from redis.retry import Retry

import program

ERRORS = (redis.RedisError, redis.exceptions.RedisClusterException, OSError)  # the second is not a RedisError

dials = []  # one entry per connection; appending is atomic
mine = threading.local()


def count_dials():
    connect = redis.Connection._connect

    def counted(self):
        dials.append(None)
        return connect(self)

    redis.Connection._connect = counted


def common(o):
    """The options of clients for one server and for a cluster, without those for which the default applies."""
    given = {
        "password": o.get("password"), "client_name": o.get("name"), "max_connections": o.get("pool_size") or None,
        "socket_timeout": program.seconds(o, "read_timeout_ns"),
        "socket_connect_timeout": program.seconds(o, "dial_timeout_ns"),
    }
    if o.get("tls"):
        given.update(ssl=True, ssl_cert_reqs="none", ssl_check_hostname=False)
    if o.get("retries"):
        given["retry"] = Retry(NoBackoff(), max(o["retries"], 0))
    return {k: v for k, v in given.items() if v is not None}


def connect(o):
    nodes = [program.endpoint(a) for a in o["addresses"]]
    mode = o.get("mode") or "standalone"
    if mode == "cluster":
        given = common(o)
        if o.get("read_replicas"):
            given["load_balancing_strategy"] = LoadBalancingStrategy.ROUND_ROBIN
        return RedisCluster(startup_nodes=[ClusterNode(h, p) for h, p in nodes], **given)
    if mode != "standalone":
        program.unsupported("mode " + mode)
    host, port = nodes[0]
    given = common(o)
    if o.get("pool_timeout_ns"):  # the default pool does not wait
        given["timeout"] = program.seconds(o, "pool_timeout_ns")
        pool = redis.BlockingConnectionPool(host=host, port=port, db=o.get("db", 0), **given)
        return redis.Redis(connection_pool=pool)
    return redis.Redis(host=host, port=port, db=o.get("db", 0), **given)


def compute(seconds):
    """Computes in Python, which holds the lock of the interpreter."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(i * i % 7 for i in range(1000))


class Workload:
    def __init__(self, o):
        self.o, self.stop = o, threading.Event()
        self.elsewhere = None
        if o.get("block_elsewhere"):  # forked now, while it has no threads
            self.elsewhere = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
            self.elsewhere.submit(compute, 0).result()
        try:
            self.now = (o, program.Mix(o), connect(o))  # a cluster client connects at once
        except ERRORS as e:
            program.unreachable(e)
        self.tallies = program.Tallies(o)
        self.ready = threading.Lock()
        self.lock = threading.Lock()  # of the application's own cache
        self.looked = 0  # how often workers have looked into that

    def change(self, o):
        """Goes on with other options. Connections that are in use are closed when they are not referred to any more."""
        before, self.now = self.now, (o, program.Mix(o), connect(o))
        pool = getattr(before[2], "connection_pool", None)
        if pool:
            pool.disconnect(inuse_connections=False)

    def operation(self):
        """Makes the calls of a chain."""
        for _ in range(max(self.now[0].get("chain", 0), 1)):
            self.call()

    def client(self):
        """The client of this thread: with own_connections one that keeps its connection."""
        o, _, client = self.now
        if not o.get("own_connections"):
            return client
        if getattr(mine, "of", None) is not client:
            mine.of, mine.client = client, client.client()
        return mine.client

    def call(self):
        args, tally = self.now[1].draw(), self.tallies.mine()
        start = time.monotonic_ns()
        try:
            reply = self.client().execute_command(*args)
        except ERRORS as e:
            tally.add(start, e)
            raise
        tally.add(start)
        return reply

    def work(self, i):
        """Makes operations at the worker's share of the rate. A worker that is late does not catch up with a burst: it
        makes the last operation that is due, and misses those before it."""
        o, slices = self.o, self.tallies.slices
        waits = slices.worker()
        gap = o["workers"] / o["rate_per_second"] if o.get("rate_per_second") else 0
        due = time.monotonic() + gap * i / o["workers"]
        while not self.stop.is_set():
            wait = due - time.monotonic()
            if wait > 0 and self.stop.wait(wait):
                return
            slices.due(waits, due)
            if self.now[0].get("lock_for_ns"):
                with self.lock:
                    self.looked += 1
            try:
                self.operation()
                slices.succeeded(waits)
                if not o.get("listen") and self.ready.acquire(blocking=False):
                    print("ready", file=sys.stderr, flush=True)
            except ERRORS:
                pass  # counted
            due += random.expovariate(1) * gap if o.get("random") else gap
            while gap and time.monotonic() - due > gap:
                slices.due(waits, due)
                due += gap
            due = due if gap else time.monotonic()

    def block(self):
        """Computes again and again: in a thread beside the workers, or in a process of its own."""
        for seconds in self.again("block"):
            if self.elsewhere:
                self.elsewhere.submit(compute, seconds).result()
            else:
                compute(seconds)

    def hold_lock(self):
        """Takes the lock again and again, as one that fills the cache from another service and waits for that."""
        for seconds in self.again("lock"):
            with self.lock:
                self.stop.wait(seconds)

    def again(self, what):
        """Waits for the time after which something is done again, and gives for how long. Other options change both."""
        while True:
            o = self.now[0]
            every = o.get(what + "_every_ns") or 20_000_000  # until other options come
            if self.stop.wait(every / 1e9):
                return
            if o.get(what + "_for_ns") and self.now[0].get(what + "_for_ns"):
                yield o[what + "_for_ns"] / 1e9 * random.uniform(0.5, 1.5)

    def serve(self):
        """The HTTP service: all requests share one client, and each makes a call of the mix."""
        load = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, body = 200, b""
                if self.path == "/stats":
                    body = json.dumps(load.summary()).encode()
                elif self.path != "/":
                    status = 404
                else:
                    try:
                        reply = load.call()
                        body = reply if isinstance(reply, bytes) else b""
                    except ERRORS as e:
                        status, body = 502, str(e).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024  # by default 5: in bursts, SYNs would be dropped and retransmitted after a second
            daemon_threads = True

        server = Server(program.endpoint(self.o["listen"]), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("ready %s:%d" % server.server_address[:2], file=sys.stderr, flush=True)

    def summary(self):
        out = self.tallies.summary("redis-py " + redis.__version__)
        out["dials"] = len(dials)
        return out

    def run(self):
        o = self.o
        signal.signal(signal.SIGTERM, lambda *_: self.stop.set())
        threading.Thread(target=self.input, daemon=True).start()
        if o.get("listen"):
            self.serve()
        workers = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(o.get("workers", 0))]
        for w in workers:
            w.start()
        for again in (self.block, self.hold_lock):
            threading.Thread(target=again, daemon=True).start()
        self.stop.wait((o.get("warmup_ns", 0) + o["duration_ns"]) / 1e9 if o.get("duration_ns") else None)
        self.stop.set()
        end = time.monotonic() + 1
        for w in workers:
            w.join(max(end - time.monotonic(), 0))  # it may wait for a reply for ever
        print(json.dumps(self.summary()), flush=True)
        if self.elsewhere:
            for p in self.elsewhere._processes.values():
                p.terminate()

    def input(self):
        while not lines.ended:  # until the parent process closes it or ends
            for line in lines.read():
                if not line:
                    continue
                try:
                    self.change(program.parse(line))
                except (ValueError, KeyError, TypeError, *ERRORS) as e:
                    print("other options: %r" % e, file=sys.stderr)
        self.stop.set()


count_dials()
lines = program.Lines()
Workload(program.options(lines)).run()
os._exit(0)
