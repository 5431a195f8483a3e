import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;

/** Counts what an application does, and reports it as lines of JSON once per second (docs/apps.md). */
final class Meter {
    private static final String SCHEMA = "slowpath.app/v1";
    private static final int KEPT_BITS = 8;
    private static final int ERROR_LIMIT = 200;

    private final Map<String, Second> open = new TreeMap<>();

    private static final class Second {
        final long unix;
        final String operation;
        final TreeMap<Long, Long> histogram = new TreeMap<>();
        long done;
        long errors;
        long sum;
        long max;
        String lastError = "";

        Second(long unix, String operation) {
            this.unix = unix;
            this.operation = operation;
        }

        String json() {
            List<String> buckets = new ArrayList<>();
            histogram.forEach((value, n) -> buckets.add("[" + value + "," + n + "]"));
            return "{\"schema\":\"" + SCHEMA + "\",\"operation\":\"" + operation + "\",\"unix_second\":" + unix
                    + ",\"done\":" + done + ",\"errors\":" + errors + ",\"sum_ns\":" + sum + ",\"max_ns\":" + max
                    + ",\"last_error\":\"" + lastError + "\",\"histogram\":[" + String.join(",", buckets) + "]}";
        }
    }

    static String url() {
        return System.getenv("REDIS_URL");
    }

    /** Does an operation and counts it, also if it fails. */
    void measure(String operation, Callable<?> act) {
        long start = System.nanoTime();
        Exception error = null;
        try {
            act.call();
        } catch (Exception e) {
            error = e;
        }
        add(operation, System.nanoTime() - start, error);
    }

    private synchronized void add(String operation, long took, Exception error) {
        long unix = System.currentTimeMillis() / 1000;
        Second s = open.computeIfAbsent(unix + " " + operation, k -> new Second(unix, operation));
        int shift = Math.max(64 - Long.numberOfLeadingZeros(took) - KEPT_BITS, 0);
        s.histogram.merge(took >> shift << shift, 1L, Long::sum);
        s.done++;
        s.sum += took;
        s.max = Math.max(s.max, took);
        if (error != null) {
            s.errors++;
            String text = error.toString().replaceAll("[^ -~]|[\"\\\\]", " ");
            s.lastError = text.substring(0, Math.min(text.length(), ERROR_LIMIT));
        }
    }

    private synchronized void write(long before) {
        StringBuilder text = new StringBuilder();
        open.values().removeIf(s -> {
            if (s.unix >= before) {
                return false;
            }
            text.append(s.json()).append('\n');
            return true;
        });
        byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
        System.out.write(bytes, 0, bytes.length);
        System.out.flush();
    }

    /** Calls act at the application's rate, in some threads with exponential gaps, until SIGTERM. */
    void run(int callers, Runnable act) throws InterruptedException {
        double rate = Double.parseDouble(System.getenv("APP_RATE"));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> write(Long.MAX_VALUE)));
        for (int i = 0; i < callers; i++) {
            Thread caller = new Thread(() -> {
                while (true) {
                    double gap = -Math.log(1 - ThreadLocalRandom.current().nextDouble()) * callers / rate;
                    try {
                        Thread.sleep((long) (gap * 1000));
                    } catch (InterruptedException e) {
                        return;
                    }
                    act.run();
                }
            });
            caller.setDaemon(true);
            caller.start();
        }
        while (true) {
            Thread.sleep(1000);
            write(System.currentTimeMillis() / 1000);
        }
    }
}
