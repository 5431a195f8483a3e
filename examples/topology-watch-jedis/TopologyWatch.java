import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.providers.ClusterConnectionProvider;

/**
 * A client of Jedis 7 that learns of moved slots by messages.
 *
 * <p>It subscribes to the channels __cluster__:moved and __cluster__:failover, on which
 * {@code slowpath topology watch CLUSTER --publish} publishes changes, and enters them into its map. It reads the map
 * at the start and when the subscription was interrupted.
 *
 * <pre>java -cp 'jedis.jar:...' TopologyWatch.java 127.0.0.1:7001</pre>
 *
 * <p>It sets keys in all slots of the cluster, and prints each second the number of calls, of failed calls, and of
 * changes received by message.
 */
final class TopologyWatch {
    private static final String[] CHANNELS = {"__cluster__:moved", "__cluster__:failover"};
    private static final int SLOTS = 16384;

    /** The nodes and the map of the client, which messages change. */
    static final class SlotMap extends ClusterConnectionProvider {
        SlotMap(HostAndPort seed, JedisClientConfig config) {
            super(Set.of(seed), config, new ConnectionPoolConfig());
        }

        /** A message is "slot host:port" or "ranges host:port". */
        void enter(String message) {
            String[] words = message.split(" ");
            cache.assignSlotsToNode(slots(words[0]), HostAndPort.from(words[1]));
        }

        /** The slots of ranges such as 0-99,200. */
        private static List<Integer> slots(String ranges) {
            List<Integer> slots = new ArrayList<>();
            for (String range : ranges.split(",")) {
                String[] ends = range.split("-");
                int last = Integer.parseInt(ends[ends.length - 1]);
                for (int slot = Integer.parseInt(ends[0]); slot <= last && slot < SLOTS; slot++) {
                    slots.add(slot);
                }
            }
            return slots;
        }
    }

    /** Enters published changes. */
    static final class Listener extends JedisPubSub {
        final AtomicInteger changes = new AtomicInteger();
        final CountDownLatch subscribed = new CountDownLatch(1);
        private final SlotMap map;

        Listener(SlotMap map) {
            this.map = map;
        }

        @Override
        public void onMessage(String channel, String message) {
            try {
                map.enter(message);
                changes.incrementAndGet();
            } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
                System.err.println("not a message of slowpath topology watch: " + message);
            }
        }

        /** What was published before was missed: the map is read once. */
        @Override
        public void onSubscribe(String channel, int count) {
            if (count == CHANNELS.length) {
                map.renewSlotCache();
                subscribed.countDown();
            }
        }

        /** Subscribes to one node after the other, until the process ends. Messages go to all nodes. */
        void follow(RedisClusterClient client) {
            while (true) {
                try {
                    client.subscribe(this, CHANNELS);
                } catch (JedisException e) {
                    System.err.println(e.getMessage());
                }
                try {
                    Thread.sleep(1000);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length != 1 || !args[0].contains(":")) {
            System.err.println("usage: TopologyWatch HOST:PORT, of any node of a cluster");
            System.exit(2);
        }
        // With RESP3 messages come as push frames. A server before Redis 6 has RESP2 only.
        JedisClientConfig config = DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP3).build();
        HostAndPort seed = HostAndPort.from(args[0]);
        SlotMap map = new SlotMap(seed, config);
        RedisClusterClient client = RedisClusterClient.builder().nodes(Set.of(seed)).clientConfig(config)
                .connectionProvider(map).build();
        Listener listener = new Listener(map);
        Thread follower = new Thread(() -> listener.follow(client), "topology");
        follower.setDaemon(true);
        follower.start();
        listener.subscribed.await();
        int calls = 0;
        int failed = 0;
        long shown = System.nanoTime();
        for (;; calls++) {
            try {
                client.set("example:" + calls % 10_000, String.valueOf(calls), SetParams.setParams().ex(60));
            } catch (JedisException e) {
                failed++;
            }
            if (System.nanoTime() - shown >= 1_000_000_000L) {
                shown = System.nanoTime();
                System.out.printf(
                        "%d calls, %d failed; %d changes by message%n", calls, failed, listener.changes.get());
            }
            Thread.sleep(1);
        }
    }
}
