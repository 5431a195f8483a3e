"""The web side: it orders thumbnails, and waits for them."""

import random

import meter
import tasks


def order(m):
    picture = "picture%d" % random.randrange(10**6)
    with m.measure("job"):
        with m.measure("enqueue"):
            result = tasks.thumbnail(picture, 80)
        if result.get(blocking=True, timeout=10) != picture + "@80":
            raise ValueError("the result of another picture")


meter.run(4, order)
