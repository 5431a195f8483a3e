// A site on Express with sessions in the server (connect-redis over node-redis).
import { RedisStore } from "connect-redis";
import express from "express";
import session from "express-session";
import { createClient } from "redis";
import { serve, url } from "./meter.mjs";

const client = createClient({ url });
client.on("error", (e) => console.error(e.message));
await client.connect();

const app = express();
app.use(session({
  store: new RedisStore({ client, prefix: "shop:" }), secret: "of the lab", resave: false, saveUninitialized: true,
}));
app.get("/", (request, response) => {
  request.session.seen = (request.session.seen ?? 0) + 1;
  response.send(`seen ${request.session.seen}`);
});
serve(app);
