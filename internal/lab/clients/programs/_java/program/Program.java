import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.ArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** The common part of the client programs in Java (docs/clients.md): the workers, and how they start and end. */
final class Program {
    private static final int BAD_OPTIONS = 2;
    private static final int UNSUPPORTED = 3;
    private static final int CONNECT = 4;

    final Options o;
    final Library library;
    final Measured measured;
    private final CountDownLatch stop;
    private final List<String[]> mix = new ArrayList<>(); // each command as often as its weight
    private final AtomicBoolean ready = new AtomicBoolean();

    private Program(Options o, Library library, CountDownLatch stop) {
        this.o = o;
        this.library = library;
        this.stop = stop;
        this.measured = new Measured(o.warmup_ns);
        for (Options.Command c : o.commands) {
            for (int i = 0; i < Math.max(c.weight, 1); i++) {
                mix.add(c.args);
            }
        }
    }

    /** The whole program: it ends after the duration, at SIGTERM, or when standard input ends. */
    static void main(Library.Opener opener) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Options o = null;
        try {
            o = Options.parse(in.readLine());
        } catch (RuntimeException | IOException e) {
            fail(BAD_OPTIONS, "reading the options from standard input: " + e.getMessage());
        }
        CountDownLatch stop = new CountDownLatch(1);
        Thread input = new Thread(() -> {
            try {
                while (in.read() >= 0) {} // until the parent process closes it or ends
            } catch (IOException e) {
                // as at the end of the input
            }
            stop.countDown();
        });
        input.setDaemon(true);
        input.start();
        Library library = null;
        try {
            library = opener.open(o);
        } catch (Library.Unsupported e) {
            fail(UNSUPPORTED, e.getMessage());
        } catch (Exception e) {
            String cause = e.getCause() == null ? "" : ": " + e.getCause().getMessage();
            fail(CONNECT, "connecting: " + e.getMessage() + cause);
        }
        new Program(o, library, stop).run();
    }

    private static void fail(int code, String text) {
        System.err.println(String.valueOf(text).replace('\n', ' '));
        System.exit(code);
    }

    private void run() throws Exception {
        if (o.listen != null && !o.listen.isEmpty()) {
            System.err.println("ready " + Service.start(this));
        }
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < o.workers; i++) {
            int id = i;
            Thread t = new Thread(() -> work(id), "worker-" + i);
            t.setDaemon(true);
            t.start();
            workers.add(t);
        }
        if (o.duration_ns > 0) {
            stop.await(o.warmup_ns + o.duration_ns, TimeUnit.NANOSECONDS);
            stop.countDown();
        } else {
            stop.await();
        }
        long end = System.nanoTime() + 1_000_000_000L;
        for (Thread t : workers) {
            t.join(Math.max(1, (end - System.nanoTime()) / 1_000_000)); // it may wait for a reply for ever
        }
        System.out.println(measured.summary(library));
        System.out.flush();
        Runtime.getRuntime().halt(0); // Lettuce takes two seconds to close
    }

    /** Makes calls at the worker's share of the rate. A worker that is late does not catch up with a burst. */
    private void work(int id) {
        double gap = o.rate_per_second > 0 ? o.workers / o.rate_per_second * 1e9 : 0;
        double due = System.nanoTime() + gap * id / o.workers;
        try {
            while (stop.getCount() > 0) {
                long wait = (long) due - System.nanoTime();
                if (wait > 0 && stop.await(wait, TimeUnit.NANOSECONDS)) {
                    return;
                }
                try {
                    call();
                    if (!ready.get() && ready.compareAndSet(false, true) && o.listen == null) {
                        System.err.println("ready");
                    }
                } catch (Exception e) {
                    // counted
                }
                due += o.random ? -Math.log(1 - ThreadLocalRandom.current().nextDouble()) * gap : gap;
                if (System.nanoTime() - due > gap) {
                    due = System.nanoTime();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Makes one call of the mix and counts it. */
    Object call() throws Exception {
        String[] args = draw();
        long start = System.nanoTime();
        try {
            Object reply = library.call(args);
            measured.mine().add(start, null);
            return reply;
        } catch (Exception e) {
            measured.mine().add(start, e);
            throw e;
        }
    }

    private String[] draw() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        String[] args = mix.get(random.nextInt(mix.size())).clone();
        for (int i = 0; i < args.length; i++) {
            if (args[i].contains("{n}")) {
                args[i] = args[i].replace("{n}", Integer.toString(random.nextInt(Math.max(o.keys, 1))));
            }
        }
        return args;
    }
}
