"""The common part of the client programs in Python (docs/clients.md): the options, the counts, the summary."""

import json
import os
import random
import re
import sys
import threading
import time

SCHEMA = "slowpath.client/v1"
UNSUPPORTED_EXIT, CONNECT_EXIT = 3, 4
KEPT_BITS = 8

# The first word of error replies from whose text the library removes it.
WORDS = {
    "AskError": "ASK", "AuthenticationError": "WRONGPASS", "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT", "ClusterDownError": "CLUSTERDOWN", "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED", "NoPermissionError": "NOPERM", "NoScriptError": "NOSCRIPT", "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY", "TryAgainError": "TRYAGAIN",
}


class Lines:
    """The lines of standard input, without Python's own buffer."""

    def __init__(self):
        self.rest, self.ended = b"", False

    def read(self):
        """Reads once, and returns the lines that are complete."""
        part = os.read(0, 1 << 16)
        self.ended = not part
        *lines, self.rest = (self.rest + part).split(b"\n")
        return lines + ([self.rest] if self.ended else [])


def parse(line):
    o = json.loads(line)
    if o["schema"] != SCHEMA or not o["addresses"] or not o["commands"]:
        raise ValueError("schema, addresses or commands")
    return o


def options(lines):
    """Waits for the first line."""
    try:
        while not (first := lines.read()):
            pass
        return parse(first[0])
    except (ValueError, KeyError, TypeError) as e:
        sys.exit("reading the options from standard input: %r" % e)


def unsupported(what):
    print("%s is not supported by this library" % what, file=sys.stderr)
    os._exit(UNSUPPORTED_EXIT)


def unreachable(e):
    print("connecting: %s" % e, file=sys.stderr)
    os._exit(CONNECT_EXIT)


def endpoint(address):
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def seconds(o, name):
    """An option in nanoseconds; None if it is not given."""
    return o[name] / 1e9 if o.get(name) else None


class Mix:
    """The commands, each as often as its weight."""

    def __init__(self, o):
        self.keys = max(o.get("keys", 0), 1)
        self.commands = [c["args"] for c in o["commands"] for _ in range(max(c.get("weight", 0), 1))]

    def draw(self):
        args = random.choice(self.commands)
        return [a.replace("{n}", str(random.randrange(self.keys))) if "{n}" in a else a for a in args]


def kind(e):
    names = [c.__name__ for c in type(e).__mro__]
    text = str(e)
    if "MaxConnectionsError" in names or "No connection available" in text or "Too many connections" in text:
        return "pool-timeout"
    if names[0] in WORDS:
        return WORDS[names[0]]
    if "TimeoutError" in names:
        return "timeout"
    if "ConnectionError" in names or "OSError" in names:
        return "connection"
    word = text.split(" ", 1)[0]
    if re.fullmatch("[A-Z]{2,20}", word):
        return word
    return "ERR" if names[0] == "ResponseError" else "other"


class Tally:
    """Counts of one thread."""

    def __init__(self, start_ns):
        self.start = start_ns  # of time.monotonic_ns
        self.buckets, self.kinds, self.per_second = {}, {}, []
        self.max, self.last_error = 0, ""
        self.lock = threading.Lock()  # for the summary of a program that still runs

    def add(self, start, error=None):
        """A call that ends now; those that began before the start are not counted."""
        if start < self.start:
            return
        now = time.monotonic_ns()
        with self.lock:
            self.count(now - start, (now - self.start) // 10**9, error)

    def count(self, took, second, error):
        shift = max(took.bit_length() - KEPT_BITS, 0)
        value = took >> shift << shift
        self.buckets[value] = self.buckets.get(value, 0) + 1
        self.max = max(self.max, took)
        while len(self.per_second) <= second:
            self.per_second.append([0, 0])
        self.per_second[second][0] += 1
        if error is not None:
            self.per_second[second][1] += 1
            self.last_error = f"{type(error).__name__}: {error}"
            k = kind(error)
            self.kinds[k] = self.kinds.get(k, 0) + 1


class Slices:
    """Operations by when they were due. One lasts until the next success of its worker (docs/clients.md)."""

    LIMIT = 12_000

    def __init__(self, start_ns, every_ns):
        self.start, self.every = start_ns, every_ns  # of time.monotonic_ns
        self.sums, self.all, self.lock = [], [], threading.Lock()

    def worker(self):
        waits = []  # when the operations were due that have no result
        with self.lock:
            self.all.append(waits)
        return waits

    def due(self, waits, at_s):
        if self.every:
            with self.lock:
                waits.append(int(at_s * 1e9))

    def succeeded(self, waits):
        if self.every:
            with self.lock:
                self.end(waits, len(waits) - 1)

    def end(self, waits, failed):
        now = time.monotonic_ns()
        for i, due in enumerate(waits):
            k = (due - self.start) // self.every
            if 0 <= k < self.LIMIT:
                while len(self.sums) <= k:
                    self.sums.append({"operations": 0, "failed": 0, "ns": 0, "max_ns": 0})
                self.sums[k]["operations"] += 1
                self.sums[k]["failed"] += i < failed
                self.sums[k]["ns"] += max(now - due, 0)
                self.sums[k]["max_ns"] = max(self.sums[k]["max_ns"], now - due)
        waits.clear()

    def finish(self):
        with self.lock:
            for waits in self.all:
                self.end(waits, len(waits))
            return self.sums


class Tallies:
    """A tally for each thread, so that threads do not wait for each other."""

    def __init__(self, o):
        warmup_ns = o.get("warmup_ns", 0)
        self.start, self.unix = time.monotonic_ns() + warmup_ns, time.time_ns() + warmup_ns
        self.slices = Slices(self.start, o.get("slice_ns", 0))
        self.own, self.all, self.lock = threading.local(), [], threading.Lock()

    def mine(self):
        if not hasattr(self.own, "tally"):
            self.own.tally = Tally(self.start)
            with self.lock:
                self.all.append(self.own.tally)
        return self.own.tally

    def summary(self, library):
        buckets, kinds, per_second, last, most = {}, {}, [], "", 0
        with self.lock:
            tallies = list(self.all)
        for t in tallies:
            with t.lock:
                for v, n in t.buckets.items():
                    buckets[v] = buckets.get(v, 0) + n
                for k, n in t.kinds.items():
                    kinds[k] = kinds.get(k, 0) + n
                for i, (calls, errors) in enumerate(t.per_second):
                    if i == len(per_second):
                        per_second.append({"calls": 0, "errors": 0})
                    per_second[i]["calls"] += calls
                    per_second[i]["errors"] += errors
                last, most = t.last_error or last, max(t.max, most)
        use = os.times()
        return {
            "schema": SCHEMA, "library": library, "calls": sum(buckets.values()), "errors": sum(kinds.values()),
            "errors_by_kind": kinds, "last_error": last, "start_unix_ns": self.unix,
            "ran_ns": max(time.monotonic_ns() - self.start, 0), "per_second": per_second,
            "histogram": sorted(buckets.items()), "max_ns": most, "cpu_ns": int((use.user + use.system) * 1e9),
            "dials": -1, "pool": {"connections": 0, "idle": 0}, "slices": self.slices.finish(),
        }
