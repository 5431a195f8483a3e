"""The tasks of a site, for Dramatiq."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

url = os.environ["REDIS_URL"]
broker = RedisBroker(url=url)
broker.add_middleware(Results(backend=RedisBackend(url=url)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def total(prices):
    return sum(prices)
