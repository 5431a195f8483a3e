import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.Pool;

/** A client program of the lab (docs/clients.md): Jedis, which borrows a connection of a pool for each call. */
final class Main implements Library {
    private final UnifiedJedis client;
    private final Own own; // null: calls borrow from the pool

    private Main(UnifiedJedis client, Own own) {
        this.client = client;
        this.own = own;
    }

    /** Connections of threads that keep theirs. One that is broken is replaced. */
    private static final class Own {
        private final HostAndPort at;
        private final JedisClientConfig config;
        private final ThreadLocal<Jedis> mine = new ThreadLocal<>();
        private final Set<Jedis> all = ConcurrentHashMap.newKeySet();
        private final AtomicLong dials = new AtomicLong();

        Own(HostAndPort at, JedisClientConfig config) {
            this.at = at;
            this.config = config;
        }

        Object call(ProtocolCommand command, String[] rest) {
            Jedis j = mine.get();
            if (j == null) {
                dials.incrementAndGet();
                j = new Jedis(at, config);
                all.add(j);
                mine.set(j);
            }
            try {
                return j.sendCommand(command, rest);
            } finally {
                if (j.isBroken()) {
                    mine.remove();
                    all.remove(j);
                    j.close();
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Program.main(Main::open);
    }

    private static Library open(Options o) throws Unsupported {
        if (o.standalone()) {
            HostAndPort at = new HostAndPort(Options.host(o.addresses[0]), Options.port(o.addresses[0]));
            return new Main(
                    RedisClient.builder().hostAndPort(at).clientConfig(config(o)).poolConfig(pool(o)).build(),
                    o.own_connections ? new Own(at, config(o)) : null);
        }
        if (!o.cluster()) {
            throw new Unsupported("mode " + o.mode);
        }
        Set<HostAndPort> nodes = new HashSet<>();
        for (String a : o.addresses) {
            nodes.add(new HostAndPort(Options.host(a), Options.port(a)));
        }
        var builder = RedisClusterClient.builder().nodes(nodes).clientConfig(config(o)).poolConfig(pool(o));
        if (o.retries != 0) {
            builder.maxAttempts(Math.max(o.retries, 0) + 1);
        }
        if (o.topology_refresh_ns > 0) {
            builder.topologyRefreshPeriod(Duration.ofNanos(o.topology_refresh_ns));
        }
        return new Main(builder.build(), null);
    }

    private static JedisClientConfig config(Options o) {
        DefaultJedisClientConfig.Builder b =
                DefaultJedisClientConfig.builder().password(o.password).clientName(o.name).database(o.db);
        if (o.dial_timeout_ns > 0) {
            b.connectionTimeoutMillis(Options.millis(o.dial_timeout_ns));
        }
        if (o.read_timeout_ns > 0) {
            b.socketTimeoutMillis(Options.millis(o.read_timeout_ns));
        }
        return b.build();
    }

    private static ConnectionPoolConfig pool(Options o) {
        ConnectionPoolConfig c = new ConnectionPoolConfig();
        if (o.pool_size > 0) {
            c.setMaxTotal(o.pool_size);
            c.setMaxIdle(o.max_idle > 0 ? o.max_idle : o.pool_size);
        } else if (o.max_idle > 0) {
            c.setMaxIdle(o.max_idle);
        }
        c.setMinIdle(o.min_idle);
        c.setTestOnBorrow(o.test_on_borrow);
        if (o.idle_limit_ns > 0) {
            c.setMinEvictableIdleDuration(Duration.ofNanos(o.idle_limit_ns));
            c.setTimeBetweenEvictionRuns(Duration.ofNanos(o.idle_limit_ns / 2)); // the defaults: 60 s, 30 s
        }
        if (o.pool_timeout_ns > 0) {
            c.setMaxWait(Duration.ofNanos(o.pool_timeout_ns));
        }
        return c;
    }

    @Override
    public Object call(String[] args) {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        ProtocolCommand command = command(args[0]);
        Object reply = own != null ? own.call(command, rest)
                : rest.length == 0 ? client.sendCommand(command) : client.sendCommand(rest[0], command, rest);
        return reply instanceof byte[] ? new String((byte[]) reply, StandardCharsets.UTF_8) : reply;
    }

    private static ProtocolCommand command(String name) {
        try {
            return Protocol.Command.valueOf(name.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            byte[] raw = name.getBytes(StandardCharsets.UTF_8);
            return () -> raw;
        }
    }

    @Override
    public String name() {
        Properties p = new Properties();
        String file = "/META-INF/maven/redis.clients/jedis/pom.properties";
        try (InputStream in = UnifiedJedis.class.getResourceAsStream(file)) {
            p.load(in);
        } catch (IOException | NullPointerException e) {
            return "jedis"; // a build without Maven
        }
        return "jedis " + p.getProperty("version");
    }

    private Collection<? extends Pool<Connection>> pools() {
        if (client instanceof RedisClusterClient) {
            return ((RedisClusterClient) client).getClusterNodes().values();
        }
        return List.of(((RedisClient) client).getPool());
    }

    /** Connections of the pools, without those that only fetch the map of a cluster. */
    @Override
    public long dials() {
        return pools().stream().mapToLong(Pool::getCreatedCount).sum() + (own == null ? 0 : own.dials.get());
    }

    @Override
    public long[] connections() {
        long idle = pools().stream().mapToLong(Pool::getNumIdle).sum();
        long used = pools().stream().mapToLong(Pool::getNumActive).sum() + (own == null ? 0 : own.all.size());
        return new long[] {idle + used, idle};
    }

    @Override
    public void close() {
        if (own != null) {
            own.all.forEach(Jedis::close);
        }
        client.close();
    }
}
