"""The web side of the shop: it orders invoices, and its users wait for them."""

import random

import meter
import shop


def order(m):
    lines = [[random.randrange(1000), random.randrange(1, 9)] for _ in range(10)]
    number = random.randrange(10**9)
    with m.measure("job"):
        with m.measure("enqueue"):
            result = shop.invoice.delay(number, lines)
        if result.get(timeout=10)["order"] != number:
            raise ValueError("the result of another order")
        result.forget()


meter.run(4, order)
