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
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** The common part of the client programs in Java (docs/clients.md): the workers, and how they start and end. */
final class Program {
    private static final int BAD_OPTIONS = 2;
    private static final int UNSUPPORTED = 3;
    private static final int CONNECT = 4;

    final Options o;
    final Measured measured;
    private final CountDownLatch stop;
    private final AtomicBoolean ready = new AtomicBoolean();
    private final ReentrantLock lock = new ReentrantLock(); // of the application's own cache
    private long looked; // how often workers have looked into that
    private volatile Use now;

    private Program(Options o, Library library, CountDownLatch stop) {
        this.o = o;
        this.now = new Use(o, library);
        this.stop = stop;
        this.measured = new Measured(o.warmup_ns, o.slice_ns);
    }

    /** A library with the options that it was opened with. */
    private static final class Use {
        final Options o;
        final int chain;
        final Library library;
        final List<String[]> mix = new ArrayList<>(); // each command as often as its weight
        final ReentrantReadWriteLock busy = new ReentrantReadWriteLock(); // read-locked by each operation
        boolean closed;

        Use(Options o, Library library) {
            this.o = o;
            this.chain = Math.max(o.chain, 1);
            this.library = library;
            for (Options.Command c : o.commands) {
                for (int i = 0; i < Math.max(c.weight, 1); i++) {
                    mix.add(c.args);
                }
            }
        }

        /** Closes the library when its operations have ended. */
        void close() {
            busy.writeLock().lock();
            closed = true;
            busy.writeLock().unlock();
            library.close();
        }
    }

    Library library() {
        return now.library;
    }

    /** Goes on with other options. */
    private void change(String line, Library.Opener opener) {
        Use before = now;
        try {
            Options next = Options.parse(line);
            now = new Use(next, opener.open(next));
        } catch (Exception e) {
            System.err.println("other options: " + String.valueOf(e.getMessage()).replace('\n', ' '));
            return;
        }
        Thread closing = new Thread(before::close, "close");
        closing.setDaemon(true);
        closing.start();
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
        Library library = null;
        try {
            library = opener.open(o);
        } catch (Library.Unsupported e) {
            fail(UNSUPPORTED, e.getMessage());
        } catch (Exception e) {
            String cause = e.getCause() == null ? "" : ": " + e.getCause().getMessage();
            fail(CONNECT, "connecting: " + e.getMessage() + cause);
        }
        Program p = new Program(o, library, stop);
        Thread input = new Thread(() -> p.follow(in, opener));
        input.setDaemon(true);
        input.start();
        p.run();
    }

    /** Reads further lines, until the parent process closes the input or ends. */
    private void follow(BufferedReader in, Library.Opener opener) {
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                change(line, opener);
            }
        } catch (IOException e) {
            // as at the end of the input
        }
        stop.countDown();
    }

    private static void fail(int code, String text) {
        System.err.println(String.valueOf(text).replace('\n', ' '));
        System.exit(code);
    }

    private void run() throws Exception {
        if (o.listen != null && !o.listen.isEmpty()) {
            System.err.println("ready " + Service.start(this));
        }
        Thread holder = new Thread(this::holdLock, "cache");
        holder.setDaemon(true);
        holder.start();
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
        System.out.println(measured.summary(library()));
        System.out.flush();
        Runtime.getRuntime().halt(0); // Lettuce takes two seconds to close
    }

    /**
     * Makes operations at the worker's share of the rate. A worker that is late does not catch up with a burst: it
     * makes the last operation that is due, and misses those before it.
     */
    private void work(int id) {
        List<Long> waits = measured.slices.worker();
        double gap = o.rate_per_second > 0 ? o.workers / o.rate_per_second * 1e9 : 0;
        double due = System.nanoTime() + gap * id / o.workers;
        try {
            while (stop.getCount() > 0) {
                long wait = (long) due - System.nanoTime();
                if (wait > 0 && stop.await(wait, TimeUnit.NANOSECONDS)) {
                    return;
                }
                measured.slices.due(waits, (long) due);
                look();
                try {
                    operation();
                    measured.slices.succeeded(waits);
                    if (!ready.get() && ready.compareAndSet(false, true) && o.listen == null) {
                        System.err.println("ready");
                    }
                } catch (Exception e) {
                    // counted
                }
                due += o.random ? -Math.log(1 - ThreadLocalRandom.current().nextDouble()) * gap : gap;
                for (; gap > 0 && System.nanoTime() - due > gap; due += gap) {
                    measured.slices.due(waits, (long) due);
                }
                if (gap == 0) {
                    due = System.nanoTime();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** What a worker does under the lock of the application, if it has one. */
    private void look() {
        if (now.o.lock_for_ns <= 0) {
            return;
        }
        lock.lock();
        looked++;
        lock.unlock();
    }

    /** Takes the lock again and again, as one that fills the cache from another service and waits for that. */
    private void holdLock() {
        final int poll = 20; // ms: other options may come
        try {
            while (stop.getCount() > 0) {
                Options o = now.o;
                if (o.lock_for_ns <= 0) {
                    Thread.sleep(poll);
                    continue;
                }
                TimeUnit.NANOSECONDS.sleep(o.lock_every_ns);
                lock.lock();
                try {
                    TimeUnit.NANOSECONDS.sleep((long) ((0.5 + Math.random()) * o.lock_for_ns));
                } finally {
                    lock.unlock();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The library that is used now, read-locked. */
    private Use use() {
        while (true) {
            Use use = now;
            use.busy.readLock().lock();
            if (!use.closed) {
                return use;
            }
            use.busy.readLock().unlock();
        }
    }

    /** Makes the calls of a chain. */
    private void operation() throws Exception {
        Use use = use();
        try {
            for (int i = 0; i < use.chain; i++) {
                call(use);
            }
        } finally {
            use.busy.readLock().unlock();
        }
    }

    /** Makes one call of the mix and counts it. */
    Object call() throws Exception {
        Use use = use();
        try {
            return call(use);
        } finally {
            use.busy.readLock().unlock();
        }
    }

    private Object call(Use use) throws Exception {
        String[] args = draw(use.mix);
        long start = System.nanoTime();
        try {
            Object reply = use.library.call(args);
            measured.mine().add(start, null);
            return reply;
        } catch (Exception e) {
            measured.mine().add(start, e);
            throw e;
        }
    }

    private String[] draw(List<String[]> mix) {
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
