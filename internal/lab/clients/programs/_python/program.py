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


def options():
    """Reads exactly one line: anything more in Python's own buffer would hide the end of the input."""
    try:
        o = json.loads(sys.stdin.buffer.readline())
        if o["schema"] != SCHEMA or not o["addresses"] or not o["commands"]:
            raise ValueError("schema, addresses or commands")
    except (ValueError, KeyError, TypeError) as e:
        sys.exit("reading the options from standard input: %r" % e)
    return o


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


class Tallies:
    """A tally for each thread, so that threads do not wait for each other."""

    def __init__(self, warmup_ns):
        self.start, self.unix = time.monotonic_ns() + warmup_ns, time.time_ns() + warmup_ns
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
            "dials": -1, "pool": {"connections": 0, "idle": 0},
        }
