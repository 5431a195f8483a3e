import java.time.Duration;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.RedisPassword;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.serializer.RedisSerializationContext.SerializationPair;
import org.springframework.data.redis.serializer.StringRedisSerializer;
import redis.clients.jedis.JedisPoolConfig;

/**
 * A client program of the lab (docs/clients.md): Spring's cache abstraction over Spring Data Redis. GET reads and SET
 * stores as @Cacheable does; DEL with the name of a cache clears it as @CacheEvict(allEntries = true) does. Keys are
 * NAME:KEY. The framework decides what it sends for these.
 */
final class Main implements Library {
    private final JedisConnectionFactory factory;
    private final RedisCacheManager caches;

    private Main(JedisConnectionFactory factory) {
        this.factory = factory;
        this.caches = RedisCacheManager.builder(factory)
                .cacheDefaults(RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofHours(1))
                        .serializeValuesWith(SerializationPair.fromSerializer(StringRedisSerializer.UTF_8)))
                .build();
    }

    public static void main(String[] args) throws Exception {
        Program.main(Main::open);
    }

    private static Library open(Options o) throws Unsupported {
        if (!o.standalone()) {
            throw new Unsupported("mode " + o.mode);
        }
        String address = o.addresses[0];
        RedisStandaloneConfiguration server =
                new RedisStandaloneConfiguration(Options.host(address), Options.port(address));
        server.setPassword(RedisPassword.of(o.password));
        server.setDatabase(o.db);
        JedisPoolConfig pool = new JedisPoolConfig();
        if (o.pool_size > 0) {
            pool.setMaxTotal(o.pool_size);
            pool.setMaxIdle(o.pool_size);
        }
        JedisClientConfiguration.JedisClientConfigurationBuilder client = JedisClientConfiguration.builder();
        if (o.name != null) {
            client.clientName(o.name);
        }
        if (o.read_timeout_ns > 0) {
            client.readTimeout(Duration.ofNanos(o.read_timeout_ns));
        }
        JedisConnectionFactory factory =
                new JedisConnectionFactory(server, client.usePooling().poolConfig(pool).build());
        factory.afterPropertiesSet();
        factory.start();
        return new Main(factory);
    }

    @Override
    public Object call(String[] args) throws Unsupported {
        int colon = args[1].indexOf(':');
        Cache cache = caches.getCache(colon < 0 ? args[1] : args[1].substring(0, colon));
        switch (args[0]) {
            case "GET":
                Cache.ValueWrapper value = cache.get(args[1].substring(colon + 1));
                return value == null ? null : value.get();
            case "SET":
                cache.put(args[1].substring(colon + 1), args[2]);
                return "OK";
            case "DEL":
                cache.clear();
                return 1L;
            default:
                throw new Unsupported("command " + args[0]);
        }
    }

    @Override
    public String name() {
        return "spring-data-redis " + RedisCacheManager.class.getPackage().getImplementationVersion();
    }

    @Override
    public long dials() {
        return -1;
    }

    @Override
    public long[] connections() {
        return new long[] {0, 0};
    }

    @Override
    public void close() {
        factory.destroy();
    }
}
