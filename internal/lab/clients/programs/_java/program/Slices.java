import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Operations by when they were due. One lasts until the next success of its worker (docs/clients.md). */
final class Slices {
    private static final int LIMIT = 12_000;

    private final long start; // of System.nanoTime
    private final long every;
    private final List<long[]> sums = new ArrayList<>(); // operations, failed, ns, max_ns
    private final List<List<Long>> all = new ArrayList<>();

    Slices(long start, long every) {
        this.start = start;
        this.every = every;
    }

    /** When the operations of a worker were due that have no result. */
    synchronized List<Long> worker() {
        List<Long> waits = new ArrayList<>();
        all.add(waits);
        return waits;
    }

    synchronized void due(List<Long> waits, long at) {
        if (every > 0) {
            waits.add(at);
        }
    }

    synchronized void succeeded(List<Long> waits) {
        end(waits, waits.size() - 1);
    }

    private void end(List<Long> waits, int failed) {
        long now = System.nanoTime();
        for (int i = 0; i < waits.size(); i++) {
            long since = waits.get(i) - start;
            if (since < 0 || since / every >= LIMIT) {
                continue;
            }
            while (sums.size() <= since / every) {
                sums.add(new long[4]);
            }
            long[] sum = sums.get((int) (since / every));
            sum[0]++;
            sum[1] += i < failed ? 1 : 0;
            sum[2] += Math.max(now - waits.get(i), 0);
            sum[3] = Math.max(sum[3], now - waits.get(i));
        }
        waits.clear();
    }

    /** Ends all operations that still wait, as failed. */
    synchronized List<Map<String, Long>> finish() {
        List<Map<String, Long>> out = new ArrayList<>();
        all.forEach(waits -> end(waits, waits.size()));
        for (long[] sum : sums) {
            Map<String, Long> slice = new LinkedHashMap<>();
            slice.put("operations", sum[0]);
            slice.put("failed", sum[1]);
            slice.put("ns", sum[2]);
            slice.put("max_ns", sum[3]);
            out.add(slice);
        }
        return out;
    }
}
