import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.models.partitions.Partitions;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.models.role.RedisNodeDescription;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.resource.ClientResources;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A client of Lettuce 6 or 7 that learns of moved slots by messages.
 *
 * <p>It subscribes to the channels __cluster__:moved and __cluster__:failover, on which
 * {@code slowpath topology watch CLUSTER --publish} publishes changes. It enters moved slots into its map, and reads
 * the map of replicas after a failover, when a node has joined, and when the subscription was interrupted.
 *
 * <pre>java -cp 'lettuce-core.jar:...' TopologyWatch.java 127.0.0.1:7001</pre>
 *
 * <p>It sets keys in all slots of the cluster, and prints each second the number of calls, of failed calls, and of
 * changes received by message.
 */
final class TopologyWatch {
    private static final String MOVED = "__cluster__:moved";
    private static final String FAILOVER = "__cluster__:failover";

    /** The client, with a map that messages change. */
    static final class Client extends RedisClusterClient {
        final AtomicInteger changes = new AtomicInteger();
        volatile boolean connected;
        private int refreshes; // that are under way
        private final List<String> meanwhile = new ArrayList<>(); // messages since the first of them began

        Client(ClientResources resources, RedisURI seed) {
            super(resources, List.of(seed));
        }

        /** A refresh asks replicas only, where there are any. */
        @Override
        protected Iterable<RedisURI> getTopologyRefreshSource() {
            List<RedisURI> replicas = new ArrayList<>();
            if (connected) { // else there is no map yet
                for (RedisClusterNode node : getPartitions()) {
                    if (node.getRole() == RedisNodeDescription.Role.REPLICA) {
                        replicas.add(node.getUri());
                    }
                }
            }
            return replicas.isEmpty() ? super.getTopologyRefreshSource() : replicas;
        }

        /** Reads the map again. What messages say meanwhile is newer than what it gives, and is entered again. */
        @Override
        public synchronized CompletionStage<Void> refreshPartitionsAsync() {
            refreshes++;
            return super.refreshPartitionsAsync().whenComplete((nothing, error) -> refreshed());
        }

        private synchronized void refreshed() {
            refreshes--;
            List<String> messages = new ArrayList<>(meanwhile);
            if (refreshes == 0) {
                meanwhile.clear();
            }
            messages.forEach(this::enter);
        }

        /** A message is "slot host:port". */
        synchronized void moved(String message) {
            if (refreshes > 0 && meanwhile.size() < 16_384) { // as many as there are slots
                meanwhile.add(message);
            }
            enter(message);
            changes.incrementAndGet();
        }

        private void enter(String message) {
            String[] words = message.split(" ");
            int colon = words[1].lastIndexOf(':');
            Partitions map = getPartitions();
            RedisClusterNode owner =
                    map.getPartition(words[1].substring(0, colon), Integer.parseInt(words[1].substring(colon + 1)));
            int slot = Integer.parseInt(words[0]);
            if (owner == null) {
                if (refreshes == 0) {
                    refreshPartitionsAsync(); // a node that has joined
                }
                return;
            }
            for (RedisClusterNode node : map) {
                List<Integer> slots = new ArrayList<>(node.getSlots());
                if (slots.removeIf(s -> s == slot) && node != owner) {
                    node.setSlots(slots);
                }
            }
            List<Integer> slots = new ArrayList<>(owner.getSlots());
            slots.add(slot);
            owner.setSlots(slots);
            map.updateCache();
            updatePartitionsInConnections();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length != 1 || !args[0].contains(":")) {
            System.err.println("usage: TopologyWatch HOST:PORT, of any node of a cluster");
            System.exit(2);
        }
        RedisURI seed = RedisURI.create("redis://" + args[0]);
        ClientResources resources = ClientResources.create();
        Client client = new Client(resources, seed);
        RedisAdvancedClusterCommands<String, String> commands = client.connect().sync();
        client.connected = true;
        subscribe(client, RedisClient.create(resources, seed).connectPubSub());
        int calls = 0;
        int failed = 0;
        long shown = System.nanoTime();
        for (;; calls++) {
            try {
                commands.setex("example:" + calls % 10_000, 60, String.valueOf(calls));
            } catch (RedisException e) {
                failed++;
            }
            if (System.nanoTime() - shown >= 1_000_000_000L) {
                shown = System.nanoTime();
                System.out.printf(
                        "%d calls, %d failed; %d changes by message%n", calls, failed, client.changes.get());
            }
            Thread.sleep(1);
        }
    }

    private static void subscribe(Client client, StatefulRedisPubSubConnection<String, String> connection) {
        connection.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                if (channel.equals(MOVED)) {
                    client.moved(message);
                } else {
                    client.refreshPartitionsAsync();
                    client.changes.incrementAndGet();
                }
            }

            /** Also after each time that Lettuce has connected again: messages may have been missed. */
            @Override
            public void subscribed(String channel, long count) {
                if (count == 2) { // channels
                    client.refreshPartitionsAsync();
                }
            }
        });
        connection.sync().subscribe(MOVED, FAILOVER);
    }
}
