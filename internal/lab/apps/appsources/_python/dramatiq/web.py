"""The web side: it sends messages, and waits for their results."""

import random

import meter
import tasks


def send(m):
    prices = [random.randrange(100) for _ in range(10)]
    with m.measure("job"):
        with m.measure("enqueue"):
            message = tasks.total.send(prices)
        if message.get_result(block=True, timeout=10_000) != sum(prices):
            raise ValueError("the result of another message")


meter.run(4, send)
