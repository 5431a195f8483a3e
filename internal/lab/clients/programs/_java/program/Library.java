/** A client library with its connections. Many threads call its methods. */
interface Library extends AutoCloseable {
    /** Makes one call. The second argument, if any, is the key. */
    Object call(String[] args) throws Exception;

    /** Its name and version. */
    String name();

    /** Connections that were opened; -1 if the library does not say. */
    long dials();

    /** Connections now: all, and idle ones. */
    long[] connections();

    @Override
    void close();

    /** Opens a library. Throws Unsupported if it cannot do what the options ask for. */
    interface Opener {
        Library open(Options o) throws Exception;
    }

    /** Says what the library cannot do. */
    final class Unsupported extends Exception {
        private static final long serialVersionUID = 1;

        Unsupported(String what) {
            super(what + " is not supported by this library");
        }
    }
}
