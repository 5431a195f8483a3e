import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The counts of all threads. Each thread has its own tally, so that threads do not wait for each other. */
final class Measured {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();

    private final long start; // of System.nanoTime
    private final long unix;
    private final ConcurrentLinkedQueue<Tally> all = new ConcurrentLinkedQueue<>();
    private final ThreadLocal<Tally> own;

    final Slices slices;

    Measured(long warmup, long slice) {
        start = System.nanoTime() + warmup;
        slices = new Slices(start, slice);
        unix = System.currentTimeMillis() * 1_000_000L + warmup;
        own = ThreadLocal.withInitial(() -> {
            Tally t = new Tally(start);
            all.add(t);
            return t;
        });
    }

    Tally mine() {
        return own.get();
    }

    /** One line of JSON. */
    String summary(Library library) {
        Tally.Sum sum = new Tally.Sum();
        for (Tally t : all) {
            t.addTo(sum);
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("schema", Options.SCHEMA);
        out.put("library", library.name());
        out.put("calls", sum.calls);
        out.put("errors", sum.errors);
        out.put("errors_by_kind", sum.kinds);
        out.put("last_error", sum.lastError);
        out.put("start_unix_ns", unix);
        out.put("ran_ns", Math.max(System.nanoTime() - start, 0));
        List<Map<String, Long>> seconds = new ArrayList<>();
        for (long[] s : sum.perSecond) {
            seconds.add(Map.of("calls", s[0], "errors", s[1]));
        }
        out.put("per_second", seconds);
        List<long[]> histogram = new ArrayList<>();
        sum.buckets.forEach((value, n) -> histogram.add(new long[] {value, n}));
        out.put("histogram", histogram);
        out.put("max_ns", sum.max);
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        out.put("cpu_ns", process.getProcessCpuTime());
        out.put("dials", library.dials());
        long[] connections = library.connections();
        out.put("pool", Map.of("connections", connections[0], "idle", connections[1]));
        long collections = 0;
        long collecting = 0;
        for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += Math.max(gc.getCollectionCount(), 0);
            collecting += Math.max(gc.getCollectionTime(), 0) * 1_000_000L;
        }
        out.put("gcs", collections);
        out.put("gc_ns", collecting);
        out.put("slices", slices.finish());
        return GSON.toJson(out);
    }
}
