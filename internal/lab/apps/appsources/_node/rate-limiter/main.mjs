// An API on Express that limits the requests of each user (rate-limiter-flexible over ioredis), and caches answers.
import express from "express";
import Redis from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { serve, twemproxy, where } from "./meter.mjs";

// twemproxy knows neither INFO nor CLIENT nor HELLO
const plain = twemproxy ? { enableReadyCheck: false, disableClientInfo: true, protocol: 2 } : {};
const client = new Redis({ ...where(), ...plain });
client.on("error", (e) => console.error(e.message));
const limiter = new RateLimiterRedis({ storeClient: client, keyPrefix: "limit", points: 10_000, duration: 60 });

const app = express();
app.get("/", async (request, response) => {
  try {
    const user = Math.floor(Math.random() * 500);
    const { remainingPoints } = await limiter.consume(`user${user}`);
    const key = `answer:${user % 50}`;
    let answer = await client.get(key);
    if (answer === null) {
      answer = JSON.stringify({ rows: Array.from({ length: 50 }, (_, i) => i) });
      await client.set(key, answer, "EX", 30);
    }
    response.set("X-RateLimit-Remaining", String(remainingPoints)).type("json").send(answer);
  } catch (e) {
    response.status(e instanceof Error ? 500 : 429).send(String(e.message ?? "too many requests"));
  }
});
serve(app);
