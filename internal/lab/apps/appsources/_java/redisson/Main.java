import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** A booking service (docs/apps.md): Redisson's locks keep each seat from being sold twice. */
final class Main {
    private static final int SEATS = 200;

    private Main() {}

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        java.net.URI url = java.net.URI.create(Meter.url());
        SingleServerConfig server =
                config.useSingleServer().setAddress(url.getScheme() + "://" + url.getHost() + ":" + url.getPort());
        if (url.getUserInfo() != null) {
            server.setPassword(url.getUserInfo().substring(1));
        }
        if (System.getenv("APP_POOL") != null) {
            int connections = Integer.parseInt(System.getenv("APP_POOL"));
            server.setConnectionPoolSize(connections).setConnectionMinimumIdleSize(connections);
        }
        int callers = System.getenv("APP_CALLERS") == null ? 6 : Integer.parseInt(System.getenv("APP_CALLERS"));
        RedissonClient client = Redisson.create(config);
        RMap<String, String> sold = client.getMap("sold");
        Meter meter = new Meter();
        meter.run(callers, () -> meter.measure("booking", () -> {
            String seat = "seat" + ThreadLocalRandom.current().nextInt(SEATS);
            RLock lock = client.getLock("lock:" + seat);
            if (!lock.tryLock(5, 10, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no lock within 5 s");
            }
            try {
                String owner = sold.get(seat);
                sold.fastPut(seat, owner == null ? "user" : owner + "+");
                if (owner != null && owner.length() > 100) {
                    sold.fastRemove(seat);
                }
            } finally {
                lock.unlock();
            }
            return seat;
        }));
    }
}
