import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.BaseRedisCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.event.connection.ConnectedEvent;
import io.lettuce.core.event.connection.DisconnectedEvent;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.resource.ClientResources;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** A client program of the lab (docs/clients.md): Lettuce, with one connection per node that all threads share. */
final class Main implements Library {
    private final List<AbstractRedisClient> clients = new ArrayList<>();
    private final List<BaseRedisCommands<String, String>> commands = new ArrayList<>();
    private final AtomicInteger threads = new AtomicInteger();
    /** Each thread uses one of the clients only. */
    private final ThreadLocal<BaseRedisCommands<String, String>> own = ThreadLocal.withInitial(this::nextClient);
    private final AtomicLong connected = new AtomicLong();
    private final AtomicLong disconnected = new AtomicLong();

    /** The clients share the resources: threads and the event bus. */
    private Main(ClientResources resources) {
        resources.eventBus().get().subscribe(event -> {
            if (event instanceof ConnectedEvent) {
                connected.incrementAndGet();
            } else if (event instanceof DisconnectedEvent) {
                disconnected.incrementAndGet();
            }
        });
    }

    public static void main(String[] args) throws Exception {
        Program.main(Main::open);
    }

    private static Library open(Options o) throws Unsupported {
        List<RedisURI> uris = new ArrayList<>();
        for (String a : o.addresses) {
            uris.add(uri(o, a));
        }
        if (o.standalone()) {
            RedisClient client = RedisClient.create(uris.get(0));
            client.setOptions(ClientOptions.builder().socketOptions(socket(o)).build());
            Main m = new Main(client.getResources());
            m.clients.add(client);
            StatefulRedisConnection<String, String> connection = client.connect();
            m.commands.add(connection.sync());
            return m;
        }
        if (!o.cluster()) {
            throw new Unsupported("mode " + o.mode);
        }
        ClientResources resources = ClientResources.create();
        Main m = new Main(resources);
        for (int i = 0; i < Math.max(1, o.clients); i++) {
            RedisClusterClient client = RedisClusterClient.create(resources, uris);
            client.setOptions(ClusterClientOptions.builder()
                    .socketOptions(socket(o)).topologyRefreshOptions(refresh(o)).build());
            m.clients.add(client);
            StatefulRedisClusterConnection<String, String> connection = client.connect();
            if (o.read_replicas) {
                connection.setReadFrom(ReadFrom.ANY);
            }
            m.commands.add(connection.sync());
        }
        return m;
    }

    private BaseRedisCommands<String, String> nextClient() {
        return commands.get(threads.getAndIncrement() % commands.size());
    }

    private static RedisURI uri(Options o, String address) {
        RedisURI.Builder b = RedisURI.builder()
                .withHost(Options.host(address)).withPort(Options.port(address)).withDatabase(o.db);
        if (o.password != null) {
            b.withPassword(o.password.toCharArray());
        }
        if (o.name != null) {
            b.withClientName(o.name);
        }
        if (o.read_timeout_ns > 0) {
            b.withTimeout(Duration.ofNanos(o.read_timeout_ns));
        }
        return b.build();
    }

    private static SocketOptions socket(Options o) {
        SocketOptions.Builder b = SocketOptions.builder();
        if (o.dial_timeout_ns > 0) {
            b.connectTimeout(Duration.ofNanos(o.dial_timeout_ns));
        }
        return b.build();
    }

    /** Without an option the default of the library applies: no refresh in version 6, adaptive in version 7. */
    private static ClusterTopologyRefreshOptions refresh(Options o) {
        ClusterTopologyRefreshOptions.Builder b = ClusterTopologyRefreshOptions.builder();
        if (o.topology_refresh_ns > 0) {
            b.enablePeriodicRefresh(Duration.ofNanos(o.topology_refresh_ns));
        }
        if (o.refresh_seeds_only) {
            b.dynamicRefreshSources(false);
        }
        if (o.refresh_adaptive) {
            b.enableAllAdaptiveRefreshTriggers();
        }
        return b.build();
    }

    @Override
    public Object call(String[] args) {
        CommandArgs<String, String> a = new CommandArgs<>(StringCodec.UTF8);
        for (int i = 1; i < args.length; i++) {
            a = i == 1 ? a.addKey(args[i]) : a.add(args[i]);
        }
        if (args[0].equalsIgnoreCase("GET")) {
            return own.get().dispatch(CommandType.GET, new ValueOutput<>(StringCodec.UTF8), a);
        }
        return own.get().dispatch(keyword(args[0]), new ArrayOutput<>(StringCodec.UTF8), a); // parses any reply
    }

    private static ProtocolKeyword keyword(String name) {
        try {
            return CommandType.valueOf(name.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            return new ProtocolKeyword() {
                @Override
                public byte[] getBytes() {
                    return name.getBytes(StandardCharsets.UTF_8);
                }

                @Override
                public String toString() {
                    return name;
                }
            };
        }
    }

    @Override
    public String name() {
        return "lettuce " + LettuceVersion.getVersion();
    }

    /** Includes the connections that the topology refresh opens. */
    @Override
    public long dials() {
        return connected.get();
    }

    @Override
    public long[] connections() {
        return new long[] {connected.get() - disconnected.get(), 0};
    }

    @Override
    public void close() {
        clients.forEach(AbstractRedisClient::shutdown);
    }
}
