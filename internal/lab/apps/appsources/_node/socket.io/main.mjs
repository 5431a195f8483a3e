// A chat: two Socket.IO servers that pass messages on through the server (its Redis adapter over node-redis), and
// users of both in one room.
import { createAdapter } from "@socket.io/redis-adapter";
import { createServer } from "node:http";
import { createClient } from "redis";
import { Server } from "socket.io";
import { io as connect } from "socket.io-client";
import { measure, run, url } from "./meter.mjs";

async function start() {
  const publisher = createClient({ url }), subscriber = publisher.duplicate();
  for (const c of [publisher, subscriber]) c.on("error", (e) => console.error(e.message));
  await Promise.all([publisher.connect(), subscriber.connect()]);
  const http = createServer();
  const server = new Server(http, { adapter: createAdapter(publisher, subscriber) });
  server.on("connection", (socket) => {
    socket.join("room");
    socket.on("say", (message) => server.to("room").emit("said", message));
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return http.address().port;
}

const heard = new Map(); // by message: what its sender waits for
const ports = [await start(), await start()];
const users = [0, 1, 0, 1].map((i) => connect(`http://127.0.0.1:${ports[i]}`, { transports: ["websocket"] }));
await Promise.all(users.map((u) => new Promise((resolve) => u.on("connect", resolve))));
for (const [i, user] of users.entries()) {
  user.on("said", (message) => {
    if (message.from % 2 !== i % 2) heard.get(message.id)?.(); // by a user of the other server
  });
}

let id = 0;
run(users.length, () => measure("message", () => new Promise((resolve, reject) => {
  const message = { id: id++, from: id % users.length, text: "hello ".repeat(5) };
  const late = setTimeout(() => { heard.delete(message.id); reject(new Error("not heard for 5 s")); }, 5000);
  heard.set(message.id, () => { clearTimeout(late); heard.delete(message.id); resolve(); });
  users[message.from].emit("say", message);
})));
