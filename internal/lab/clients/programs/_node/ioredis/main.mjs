// A client program of the lab (docs/clients.md): ioredis.
import { createRequire } from "node:module";
import net from "node:net";
import { Cluster, Redis } from "ioredis";
import { endpoint, given, ms, run, unsupported } from "./program.mjs";

const { version } = createRequire(import.meta.url)("ioredis/package.json");

let dials = 0;
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  dials++;
  return connect.apply(this, args);
};

function options(o) {
  return given({
    password: o.password, connectionName: o.name, db: o.db || undefined,
    connectTimeout: ms(o.dial_timeout_ns), commandTimeout: ms(o.read_timeout_ns),
    maxRetriesPerRequest: o.retries ? Math.max(o.retries, 0) : undefined,
  });
}

await run(`ioredis ${version}`, async (o) => {
  const mode = o.mode || "standalone";
  if (mode === "ring") await unsupported(`mode ${mode}`);
  const nodes = o.addresses.map(endpoint);
  const client = mode === "cluster"
    ? new Cluster(nodes, given({
      redisOptions: options(o), scaleReads: o.read_replicas ? "all" : undefined,
      slotsRefreshInterval: ms(o.topology_refresh_ns),
    }))
    : new Redis({ ...nodes[0], ...options(o) });
  client.on("error", () => {}); // calls that fail are counted; without a listener the library prints
  return {
    call: (args) => client.call(...args),
    dials: () => dials,
    pool: () => {
      const n = mode === "cluster" ? client.nodes("all").length : Number(client.status === "ready");
      return { connections: n, idle: 0 };
    },
    close: () => client.disconnect(),
  };
});
