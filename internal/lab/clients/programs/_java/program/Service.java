import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** The HTTP service: all requests share one client, and each makes a call of the mix. */
final class Service {
    private static final int BACKLOG = 1024;

    private Service() {}

    /** Starts it and returns its address. */
    static String start(Program p) throws IOException {
        // otherwise replies wait up to 40 ms for delayed acknowledgements
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(
                new InetSocketAddress(Options.host(p.o.listen), Options.port(p.o.listen)), BACKLOG);
        server.setExecutor(Executors.newCachedThreadPool(r -> {
            Thread t = new Thread(r, "http");
            t.setDaemon(true);
            return t;
        }));
        server.createContext("/", exchange -> {
            switch (exchange.getRequestURI().getPath()) {
                case "/":
                    try {
                        answer(exchange, 200, String.valueOf(p.call()));
                    } catch (Exception e) {
                        answer(exchange, 502, String.valueOf(e));
                    }
                    break;
                case "/stats":
                    answer(exchange, 200, p.measured.summary(p.library()));
                    break;
                default:
                    answer(exchange, 404, "");
            }
        });
        server.start();
        InetSocketAddress at = server.getAddress();
        return at.getAddress().getHostAddress() + ":" + at.getPort();
    }

    private static void answer(HttpExchange exchange, int code, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(code, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
