import jakarta.servlet.http.HttpSession;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Import;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A Spring Boot site (docs/apps.md): its sessions (Spring Session) and its cache are in the server, over Lettuce. */
@EnableAutoConfiguration
@EnableCaching
@Import({Main.Products.class, Main.Pages.class})
class Main {
    public static void main(String[] args) {
        String listen = System.getenv("APP_LISTEN");
        System.setProperty("server.address", listen.substring(0, listen.lastIndexOf(':')));
        System.setProperty("server.port", listen.substring(listen.lastIndexOf(':') + 1));
        System.setProperty("spring.data.redis.url", System.getenv("REDIS_URL"));
        SpringApplication.run(Main.class, args);
    }

    @Service
    static class Products {
        @Cacheable("products")
        public String describe(int number) {
            return "product " + number + " " + "x".repeat(500);
        }
    }

    @RestController
    static class Pages {
        private final Products products;

        Pages(Products products) {
            this.products = products;
        }

        @GetMapping("/")
        List<String> page(HttpSession session) {
            Object seen = session.getAttribute("seen");
            int views = seen == null ? 1 : (Integer) seen + 1;
            session.setAttribute("seen", views);
            ThreadLocalRandom any = ThreadLocalRandom.current();
            return List.of("seen " + views, products.describe(any.nextInt(500)), products.describe(any.nextInt(500)));
        }
    }
}
