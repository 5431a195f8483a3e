// A client program of the lab (docs/clients.md): node-redis.
import { createRequire } from "node:module";
import net from "node:net";
import { createClient, createClientPool, createCluster } from "redis";
import { endpoint, given, ms, run, unsupported } from "./program.mjs";

const { version } = createRequire(import.meta.url)("redis/package.json");

const CONNECT_MS = 5000;

let dials = 0;
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  dials++;
  return connect.apply(this, args);
};

function options(o) {
  const { host, port } = endpoint(o.addresses[0]);
  const socket = given({
    host, port, connectTimeout: ms(o.dial_timeout_ns), reconnectStrategy: o.retries < 0 ? false : undefined,
  });
  return given({
    socket, password: o.password, name: o.name, database: o.db || undefined,
    commandOptions: o.read_timeout_ns ? { timeout: ms(o.read_timeout_ns) } : undefined,
  });
}

await run(`node-redis ${version}`, async (o) => {
  const mode = o.mode || "standalone";
  let client, send;
  if (mode === "cluster") {
    const { socket, database, ...defaults } = options(o);
    client = createCluster({
      rootNodes: o.addresses.map((a) => ({ socket: endpoint(a) })), useReplicas: Boolean(o.read_replicas),
      defaults: { ...defaults, socket: given({ connectTimeout: socket.connectTimeout }) },
    });
    send = (args) => client.sendCommand(args[1], /^(get|mget|exists|ttl)$/i.test(args[0]), args);
  } else if (mode !== "standalone") {
    await unsupported(`mode ${mode}`);
  } else if (o.pool_size) {
    client = createClientPool(options(o), given({
      minimum: Math.min(o.min_idle || 1, o.pool_size), maximum: o.pool_size, acquireTimeout: ms(o.pool_timeout_ns),
    }));
    send = (args) => client.sendCommand(args);
  } else {
    client = createClient(options(o));
    send = (args) => client.sendCommand(args);
  }
  let refused = new Error(`no connection within ${CONNECT_MS} ms`);
  client.on("error", (e) => { refused = e; }); // calls that fail are counted; without a listener the process would end
  let timer; // the library would try to connect for ever
  const tooLong = new Promise((_, reject) => { timer = setTimeout(() => reject(refused), CONNECT_MS); });
  await Promise.race([client.connect(), tooLong]);
  clearTimeout(timer);
  return {
    call: send,
    dials: () => dials,
    pool: () => ({ connections: client.totalClients ?? 0, idle: client.idleClients ?? 0 }),
    close: () => client.destroy(),
  };
});
