import com.google.gson.Gson;
import com.google.gson.JsonParseException;

/** The options of docs/clients.md. An option that is not given is 0 or null: the default of the library applies. */
final class Options {
    static final String SCHEMA = "slowpath.client/v1";

    String schema;
    String[] addresses;
    String mode;
    String password;
    String name;
    int db;
    Command[] commands;
    int keys;
    int workers;
    double rate_per_second;
    boolean random;
    long warmup_ns;
    long duration_ns;
    String listen;
    long slice_ns;
    int chain;
    int pool_size;
    int min_idle;
    int max_idle;
    long idle_limit_ns;
    long pool_timeout_ns;
    long dial_timeout_ns;
    long read_timeout_ns;
    int retries;
    boolean test_on_borrow;
    boolean read_replicas;
    boolean own_connections;
    long topology_refresh_ns;
    boolean refresh_seeds_only;
    boolean refresh_adaptive;
    int clients;
    long lock_every_ns;
    long lock_for_ns;

    /** One kind of call. */
    static final class Command {
        String[] args;
        int weight;
    }

    /** Reads one line. */
    static Options parse(String line) {
        Options o = new Gson().fromJson(line, Options.class);
        if (o == null || !SCHEMA.equals(o.schema) || o.addresses == null || o.addresses.length == 0
                || o.commands == null || o.commands.length == 0) {
            throw new JsonParseException("schema, addresses or commands");
        }
        return o;
    }

    boolean cluster() {
        return "cluster".equals(mode);
    }

    boolean standalone() {
        return mode == null || mode.isEmpty() || mode.equals("standalone");
    }

    static int millis(long ns) {
        return (int) Math.max(1, ns / 1_000_000);
    }

    static String host(String address) {
        return address.substring(0, address.lastIndexOf(':')).replaceAll("^\\[|\\]$", "");
    }

    static int port(String address) {
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }
}
