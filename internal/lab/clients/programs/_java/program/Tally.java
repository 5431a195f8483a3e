import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Counts of one thread. */
final class Tally {
    private static final int KEPT_BITS = 8;

    private final long start; // of System.nanoTime
    private final Map<Long, long[]> buckets = new HashMap<>();
    private final Map<String, Long> kinds = new HashMap<>();
    private final List<long[]> perSecond = new ArrayList<>(); // calls, errors
    private long max;
    private String lastError = "";

    Tally(long start) {
        this.start = start;
    }

    /** Keeps the leading binary digits of a number of nanoseconds. */
    static long floor(long ns) {
        int shift = Math.max(64 - Long.numberOfLeadingZeros(ns) - KEPT_BITS, 0);
        return ns >> shift << shift;
    }

    /** Counts a call that ends now, unless it began before the start. */
    synchronized void add(long began, Throwable error) {
        if (began - start < 0) {
            return;
        }
        long end = System.nanoTime();
        buckets.computeIfAbsent(floor(end - began), k -> new long[1])[0]++;
        max = Math.max(max, end - began);
        int second = (int) ((end - start) / 1_000_000_000L);
        while (perSecond.size() <= second) {
            perSecond.add(new long[2]);
        }
        perSecond.get(second)[0]++;
        if (error != null) {
            perSecond.get(second)[1]++;
            lastError = String.valueOf(error);
            kinds.merge(Kind.of(error), 1L, Long::sum);
        }
    }

    /** The counts of all threads together. */
    static final class Sum {
        final TreeMap<Long, Long> buckets = new TreeMap<>();
        final Map<String, Long> kinds = new HashMap<>();
        final List<long[]> perSecond = new ArrayList<>();
        long calls;
        long errors;
        long max;
        String lastError = "";
    }

    synchronized void addTo(Sum sum) {
        buckets.forEach((value, n) -> {
            sum.buckets.merge(value, n[0], Long::sum);
            sum.calls += n[0];
        });
        kinds.forEach((kind, n) -> sum.kinds.merge(kind, n, Long::sum));
        for (int i = 0; i < perSecond.size(); i++) {
            if (i == sum.perSecond.size()) {
                sum.perSecond.add(new long[2]);
            }
            sum.perSecond.get(i)[0] += perSecond.get(i)[0];
            sum.perSecond.get(i)[1] += perSecond.get(i)[1];
            sum.errors += perSecond.get(i)[1];
        }
        sum.max = Math.max(sum.max, max);
        if (!lastError.isEmpty()) {
            sum.lastError = lastError;
        }
    }
}
