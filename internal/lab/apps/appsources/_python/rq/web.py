"""The web side: it enqueues mails, and waits for them."""

import random

import mails
import meter
from redis import Redis
from rq import Queue

queue = Queue("mails", connection=Redis.from_url(meter.url))


def send(m):
    with m.measure("job"):
        with m.measure("enqueue"):
            job = queue.enqueue(mails.render, "user%d" % random.randrange(1000), ["book", "pen"], result_ttl=60)
        result = job.latest_result(timeout=10)
        if result is None or result.type != result.Type.SUCCESSFUL:
            raise TimeoutError("no result")


meter.run(2, send)
