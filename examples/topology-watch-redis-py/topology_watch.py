"""A client of redis-py that learns of moved slots by messages.

It subscribes to the channels __cluster__:moved and __cluster__:failover, on which `slowpath topology watch CLUSTER
--publish` publishes changes, and enters them into the map of its redis.RedisCluster. So calls need no MOVED, and
nobody asks for the map but at the start and when the subscription was interrupted.

    pip install redis==8.1.0
    python3 topology_watch.py 127.0.0.1:7001

It sets keys in all slots of the cluster, and prints each second the number of calls, of failed calls, and of changes
received by message.
"""

import sys
import threading
import time

import redis
from redis.exceptions import MovedError

CHANNELS = ("__cluster__:moved", "__cluster__:failover")
SLOTS = 16384


def slots_of(ranges):
    """The slots of ranges such as 0-99,200."""
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        first, last = int(first), int(last or first)
        if not 0 <= first <= last < SLOTS:
            raise ValueError(f"not a range of slots: {part!r}")
        yield from range(first, last + 1)


class SlotListener(threading.Thread):
    """Enters published changes into the map of a client until the process ends."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.changes = 0
        self.subscribed = threading.Event()

    def run(self):
        while True:
            for node in self.client.get_nodes():
                try:
                    self.listen_to(node)
                except redis.RedisError as e:
                    print(f"{node.name}: {e}", file=sys.stderr)
                time.sleep(1)

    def listen_to(self, node):
        """Messages go to all nodes. What was published before the subscription was missed: the map is read once."""
        with redis.Redis(host=node.host, port=node.port) as connection, connection.pubsub() as messages:
            messages.subscribe(*CHANNELS)
            for message in messages.listen():
                if message["type"] == "subscribe":
                    if message["data"] == len(CHANNELS):
                        self.client.nodes_manager.initialize()
                        self.subscribed.set()
                elif message["type"] == "message":
                    self.apply(message["data"].decode())

    def apply(self, payload):
        """A message is "slot host:port" or "ranges host:port". The first is also the text of a MOVED reply."""
        try:
            ranges, owner = payload.split(" ")
            for slot in slots_of(ranges):
                self.client.nodes_manager.move_slot(MovedError(f"{slot} {owner}"))
        except ValueError as e:
            print(f"not a message of slowpath topology watch: {payload!r}: {e}", file=sys.stderr)
            return
        self.changes += 1


def main():
    if len(sys.argv) != 2 or ":" not in sys.argv[1]:
        sys.exit("usage: topology_watch.py HOST:PORT, of any node of a cluster")
    host, _, port = sys.argv[1].rpartition(":")
    client = redis.RedisCluster(host=host, port=int(port))
    listener = SlotListener(client)
    listener.start()
    listener.subscribed.wait()
    calls = failed = 0
    shown = time.monotonic()
    while True:
        try:
            client.set(f"example:{calls % 10_000}", calls, ex=60)
        except redis.RedisError:
            failed += 1
        calls += 1
        if time.monotonic() - shown >= 1:
            shown = time.monotonic()
            print(f"{calls} calls, {failed} failed; {listener.changes} changes by message", flush=True)
        time.sleep(0.001)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
