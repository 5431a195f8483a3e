import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeoutException;

/** The kind of an error. That of an error reply is its first word, in capitals. */
final class Kind {
    private Kind() {}

    static String of(Throwable error) {
        for (Throwable e = error; e != null; e = e.getCause()) {
            String name = e.getClass().getSimpleName();
            String text = String.valueOf(e.getMessage());
            String word = text.split(" ", 2)[0];
            if (name.contains("ExhaustedPool") || text.contains("Timeout waiting for idle object")) {
                return "pool-timeout";
            }
            if (e instanceof SocketTimeoutException || e instanceof TimeoutException
                    || name.equals("RedisCommandTimeoutException")) {
                return "timeout";
            }
            if (name.startsWith("Jedis") && name.endsWith("DataException")
                    || name.equals("RedisCommandExecutionException")) {
                return word.matches("[A-Z]{2,20}") ? word : "other";
            }
            if (e instanceof IOException) {
                return "connection";
            }
        }
        String all = error.getClass().getSimpleName() + " " + error.getMessage();
        if (all.matches("(?s).*(Connection|connect|closed|Cluster).*")) {
            return "connection";
        }
        return "other";
    }
}
