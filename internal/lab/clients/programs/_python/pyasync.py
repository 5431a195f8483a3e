"""A client program of the lab (docs/clients.md): redis.asyncio on one event loop."""

import asyncio
import collections
import concurrent.futures
import gc
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time

import redis
from redis.asyncio import Redis

import program


def compute(rows, seconds):
    """Sorts, encodes and signs rows, for so much CPU time of this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        rows.sort(key=lambda r: r["total"])
        hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        rows = json.loads(json.dumps(rows))


class Workload:
    def __init__(self, options):
        self.o, self.mix = options, program.Mix(options)  # block and heap change with further lines
        if (options.get("mode") or "standalone") != "standalone" or options.get("listen"):
            program.unsupported("a cluster, or the HTTP service,")
        self.tallies = program.Tallies(options)
        self.calls, self.answered = 0, False
        self.gcs = []
        self.stop = asyncio.Event()
        self.heap = collections.deque()
        # forked now, while it has neither threads nor handlers of signals
        self.elsewhere = None
        if options.get("block_elsewhere"):
            self.elsewhere = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
            self.elsewhere.submit(compute, [], 0).result()
        host, port = program.endpoint(options["addresses"][0])
        self.redis = Redis(
            host=host, port=port, db=options.get("db", 0), password=options.get("password"),
            client_name=options.get("name"), socket_timeout=program.seconds(options, "read_timeout_ns"),
            max_connections=options.get("pool_size") or None)

    async def run(self):
        o = self.o
        self.loop = asyncio.get_running_loop()
        self.loop.add_signal_handler(signal.SIGTERM, self.stop.set)
        os.set_blocking(0, False)
        self.loop.add_reader(0, self.input)
        self.fill()
        gc.callbacks.append(self.collected)
        tasks = [asyncio.create_task(self.work(i)) for i in range(o["workers"])]
        if o.get("duration_ns"):
            self.loop.call_later((o.get("warmup_ns", 0) + o["duration_ns"]) / 1e9, self.stop.set)
        tasks.append(asyncio.create_task(self.block()))
        await self.stop.wait()
        await asyncio.wait(tasks, timeout=1)  # they end by themselves: redis-py 4.3.4 may swallow a cancellation
        gc.callbacks.remove(self.collected)
        if self.elsewhere:
            self.elsewhere.shutdown()
        self.report()

    def input(self):
        for line in lines.read():
            if line:
                self.change(line)
        if lines.ended:  # the parent process closed it or ended
            self.loop.remove_reader(0)
            self.stop.set()

    def change(self, line):
        """Goes on with other options of the process. Those of the library stay."""
        try:
            o = program.parse(line)
        except (ValueError, KeyError, TypeError) as e:
            print("other options: %r" % e, file=sys.stderr)
            return
        for name in ("block_every_ns", "block_for_ns", "heap_per_call"):
            self.o[name] = o.get(name, 0)

    async def work(self, i):
        """Makes bursts of concurrent calls at the worker's share of the rate, each call on its own connection."""
        o, slices = self.o, self.tallies.slices
        burst = max(o.get("burst", 0), 1)
        waits = [slices.worker() for _ in range(burst)]
        gap = o["workers"] * burst / o["rate_per_second"] if o.get("rate_per_second") else 0
        due = time.monotonic() + gap * i / o["workers"]
        while not self.stop.is_set():
            await asyncio.sleep(max(due - time.monotonic(), 0))
            await asyncio.gather(*[self.operation(w, due) for w in waits])
            due += random.expovariate(1) * gap if o.get("random") else gap
            while gap and time.monotonic() - due > gap:  # late: do not catch up with more calls
                for w in waits:
                    slices.due(w, due)
                due += gap
            due = due if gap else time.monotonic()

    async def operation(self, waits, due):
        self.tallies.slices.due(waits, due)
        if not await self.call():
            self.tallies.slices.succeeded(waits)

    async def call(self):
        args, tally, error = self.mix.draw(), self.tallies.mine(), None
        start = time.monotonic_ns()
        try:
            await self.redis.execute_command(*args)
        except Exception as e:
            error = e
        tally.add(start, error)
        if not error and not self.answered:
            self.answered = True
            print("ready", file=sys.stderr, flush=True)
        self.calls += 1
        self.remember()
        return error

    async def block(self):
        """Computes while calls wait for their replies: on the event loop, or in a process of its own."""
        rows = [{"id": i, "name": "customer %d" % i, "total": random.random()} for i in range(300)]
        while not self.stop.is_set():
            every, block = self.o.get("block_every_ns", 0) / 1e9, self.o.get("block_for_ns", 0) / 1e9
            if not every:
                await asyncio.sleep(0.02)  # until other options come
                continue
            await asyncio.sleep(every)
            calls = [asyncio.create_task(self.call()) for _ in range(max(self.o.get("burst", 0), 1))]
            for _ in range(3):  # iterations: redis-py 4.3.4 sends in the third and has the replies in the seventh
                await asyncio.sleep(0)
            seconds = block * random.uniform(0.5, 1.5)
            if self.elsewhere:
                await self.loop.run_in_executor(self.elsewhere, compute, rows, seconds)
            else:
                compute(rows, seconds)
            await asyncio.gather(*calls)

    @staticmethod
    def session(i):
        """An entry of a cache in this process: five containers that the garbage collector walks."""
        return {"id": i, "user": {"name": "user %d" % i}, "cart": [[i, 1], [i + 1, 2]]}

    def fill(self):
        """Fills the cache. The garbage collector is off meanwhile, for a fast start."""
        gc.disable()
        self.heap.extend(self.session(i) for i in range(self.o.get("heap_objects", 0) // 5))
        gc.enable()
        if self.o.get("gc_threshold"):
            gc.set_threshold(self.o["gc_threshold"], 20, 100)
            gc.freeze()

    def remember(self):
        """Adds entries to the cache for each reply, and cuts it to its size when it is 2 % too large. CPython walks the
        whole heap when more than a quarter of it is new (Modules/gcmodule.c, gc_collect_generations)."""
        size = self.o.get("heap_objects", 0) // 5
        self.heap.extend(self.session(self.calls) for _ in range(self.o.get("heap_per_call", 0) // 5))
        if len(self.heap) > size * 1.02:
            while len(self.heap) > size:
                self.heap.popleft()

    def collected(self, phase, info):
        if info["generation"] < 2:
            return
        if phase == "start":
            self.gc_start = time.monotonic_ns()
        else:
            self.gcs.append(time.monotonic_ns() - self.gc_start)

    def report(self):
        out = self.tallies.summary("redis.asyncio " + redis.__version__)
        out.update(gcs=len(self.gcs), gc_ns=sum(self.gcs), gc_max_ns=max(self.gcs, default=0))
        print(json.dumps(out), flush=True)


async def main():
    await Workload(program.options(lines)).run()


lines = program.Lines()


asyncio.run(main())
os._exit(0)  # freeing a million objects would take too long
