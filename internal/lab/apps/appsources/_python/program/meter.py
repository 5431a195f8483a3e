"""Counts what an application does, and reports it as lines of JSON once per second (docs/apps.md)."""

import json
import os
import random
import signal
import sys
import threading
import time
from contextlib import contextmanager

SCHEMA = "slowpath.app/v1"
KEPT_BITS = 8
ERROR_LIMIT = 200

url = os.environ["REDIS_URL"]
rate = float(os.environ["APP_RATE"])
stopping = threading.Event()


class Meter:
    def __init__(self):
        self.lock, self.seconds = threading.Lock(), {}

    def add(self, operation, took, error=None):
        """Counts an operation that ends now."""
        shift = max(took.bit_length() - KEPT_BITS, 0)
        value = took >> shift << shift
        with self.lock:
            line = self.seconds.setdefault((int(time.time()), operation), {
                "schema": SCHEMA, "operation": operation, "unix_second": int(time.time()), "done": 0, "errors": 0,
                "sum_ns": 0, "max_ns": 0, "histogram": {},
            })
            line["done"] += 1
            line["sum_ns"] += took
            line["max_ns"] = max(line["max_ns"], took)
            line["histogram"][value] = line["histogram"].get(value, 0) + 1
            if error is not None:
                line["errors"] += 1
                line["last_error"] = f"{type(error).__name__}: {error}"[:ERROR_LIMIT]

    @contextmanager
    def measure(self, operation):
        """Counts what the block does. It may fail: that is counted too."""
        start, error = time.monotonic_ns(), None
        try:
            yield
        except Exception as e:
            error = e
        self.add(operation, time.monotonic_ns() - start, error)

    def write(self, before):
        with self.lock:
            over = [self.seconds.pop(k) for k in sorted(self.seconds) if k[0] < before]
        for line in over:
            line["histogram"] = sorted(line["histogram"].items())
            print(json.dumps(line), flush=True)


def run(callers, do):
    """Runs do(meter) at the application's rate, in some threads with exponential gaps, until SIGTERM."""
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: stopping.set())
    meter = Meter()

    def caller():
        while not stopping.wait(random.expovariate(rate / callers)):
            do(meter)

    for _ in range(callers):
        threading.Thread(target=caller, daemon=True).start()
    while not stopping.wait(1):
        meter.write(int(time.time()))
    meter.write(int(time.time()) + 1)
    sys.stdout.flush()
    os._exit(0)  # a caller may wait for a reply that never comes
