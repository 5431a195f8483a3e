/** A client library with its connections. Its methods are called by many threads. */
interface Library extends AutoCloseable {
    /** Makes one call; the second argument, where there is one, is the key. */
    Object call(String[] args) throws Exception;

    /** Its name and version. */
    String name();

    /** Connections that were opened, -1 where the library does not tell. */
    long dials();

    /** Connections at this moment: all, and idle ones. */
    long[] connections();

    @Override
    void close();

    /** Opens a library. Throws Unsupported where it cannot do what the options ask for. */
    interface Opener {
        Library open(Options o) throws Exception;
    }

    /** What the library cannot do. */
    final class Unsupported extends Exception {
        private static final long serialVersionUID = 1;

        Unsupported(String what) {
            super(what + " is not supported by this library");
        }
    }
}
