// The common part of the client programs for Node (docs/clients.md): the options, the workers, the counts, the HTTP
// service.
import { createServer } from "node:http";

const SCHEMA = "slowpath.client/v1";
const KEPT_BITS = 8;
export const UNSUPPORTED_EXIT = 3;
export const CONNECT_EXIT = 4;

// now is monotonic, in nanoseconds. It is exact up to 2^53, which is 104 days.
const now = () => Number(process.hrtime.bigint() - zero);
const zero = process.hrtime.bigint();

function fail(code, text) {
  process.stderr.write(text.split("\n")[0] + "\n", () => process.exit(code));
  return new Promise(() => {}); // the caller stops here
}

export const unsupported = (what) => fail(UNSUPPORTED_EXIT, `${what} is not supported by this library`);

// floor keeps the leading binary digits of a number of nanoseconds.
function floor(ns) {
  const bits = ns < 2 ** 32 ? 32 - Math.clz32(ns) : 64 - Math.clz32(ns / 2 ** 32);
  const unit = 2 ** Math.max(bits - KEPT_BITS, 0);
  return ns - (ns % unit);
}

// kind is the kind of an error. That of an error reply is its first word, in capitals.
function kind(error) {
  const text = String(error.message ?? error);
  const code = error.code ?? error.cause?.code ?? error.lastNodeError?.code ?? "";
  if (/acquire|pool/i.test(text)) return "pool-timeout";
  if (code === "ETIMEDOUT" || /timed out|timeout/i.test(text)) return "timeout";
  if (/^(ECONN|EPIPE|EHOST|ENET|ENOTFOUND)/.test(code)) return "connection";
  if (/closed|connect|max retries per request|offline/i.test(text)) return "connection";
  const word = text.split(" ", 1)[0];
  return /^[A-Z]{2,20}$/.test(word) ? word : "other";
}

class Tally {
  constructor(warmup) {
    this.start = now() + warmup;
    this.unix = BigInt(Date.now()) * 1000000n + BigInt(warmup);
    this.buckets = new Map();
    this.kinds = {};
    this.perSecond = [];
    this.calls = this.errors = this.max = 0;
    this.lastError = "";
  }

  // add counts a call that ends now, unless it began before the start.
  add(start, error) {
    if (start < this.start) return;
    const end = now();
    const took = end - start;
    const value = floor(took);
    this.buckets.set(value, (this.buckets.get(value) ?? 0) + 1);
    this.max = Math.max(this.max, took);
    this.calls++;
    const second = Math.floor((end - this.start) / 1e9);
    while (this.perSecond.length <= second) this.perSecond.push({ calls: 0, errors: 0 });
    this.perSecond[second].calls++;
    if (!error) return;
    this.perSecond[second].errors++;
    this.errors++;
    this.lastError = String(error.message ?? error);
    const k = kind(error);
    this.kinds[k] = (this.kinds[k] ?? 0) + 1;
  }

  summary(library, dials, pool, slices) {
    const cpu = process.cpuUsage();
    return JSON.stringify({
      schema: SCHEMA, library, calls: this.calls, errors: this.errors, errors_by_kind: this.kinds,
      last_error: this.lastError, start_unix_ns: 0, ran_ns: Math.max(now() - this.start, 0),
      per_second: this.perSecond, histogram: [...this.buckets].sort((a, b) => a[0] - b[0]), max_ns: this.max,
      cpu_ns: (cpu.user + cpu.system) * 1000, dials, pool, slices: slices.finish(),
    }).replace('"start_unix_ns":0', `"start_unix_ns":${this.unix}`); // too large for JSON.stringify to write exactly
  }
}

// Slices sum up operations by when they were due. One lasts until the next success of its worker (docs/clients.md).
class Slices {
  static LIMIT = 12_000;

  constructor(start, every) {
    this.start = start;
    this.every = every;
    this.sums = [];
    this.all = [];
  }

  // worker returns when the operations of a worker were due that have no result.
  worker() {
    const waits = [];
    this.all.push(waits);
    return waits;
  }

  due(waits, at) {
    if (this.every) waits.push(at);
  }

  succeeded(waits) {
    this.end(waits, waits.length - 1);
  }

  end(waits, failed) {
    const at = now();
    waits.forEach((due, i) => {
      const k = Math.floor((due - this.start) / this.every), took = Math.round(Math.max(at - due, 0));
      if (k < 0 || k >= Slices.LIMIT) return;
      while (this.sums.length <= k) this.sums.push({ operations: 0, failed: 0, ns: 0, max_ns: 0 });
      this.sums[k].operations++;
      this.sums[k].failed += Number(i < failed);
      this.sums[k].ns += took;
      this.sums[k].max_ns = Math.max(this.sums[k].max_ns, took);
    });
    waits.length = 0;
  }

  finish() {
    for (const waits of this.all) this.end(waits, waits.length);
    return this.sums;
  }
}

function parse(line) {
  const o = JSON.parse(line);
  if (o.schema === SCHEMA && o.addresses?.length && o.commands?.length) return o;
  throw new Error("schema, addresses or commands");
}

// readOptions reads the first line. Further ones go to change(options), until the input ends, and so the program.
async function readOptions(stop, change) {
  let text = "", first;
  const line = new Promise((resolve) => {
    const end = () => { resolve(text); stop(); };
    process.stdin.on("data", (chunk) => {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop().slice(0, 1 << 20);
      if (first === undefined && lines.length) resolve(first = lines.shift());
      for (const l of lines) {
        try {
          change(parse(l));
        } catch (e) {
          process.stderr.write(`other options: ${e.message}\n`);
        }
      }
    });
    process.stdin.on("end", end);
    process.stdin.on("error", end);
  });
  try {
    return parse(await line);
  } catch (e) {
    return fail(2, `reading the options from standard input: ${e.message.replaceAll("\n", " ")}`);
  }
}

export const endpoint = (address) => {
  const i = address.lastIndexOf(":");
  return { host: address.slice(0, i).replace(/^\[|\]$/g, ""), port: Number(address.slice(i + 1)) };
};

// ms converts an option from nanoseconds to the libraries' milliseconds; undefined if it is not given.
export const ms = (ns) => (ns ? ns / 1e6 : undefined);

// given removes options that are undefined, so that the defaults of the library apply.
export const given = (options) =>
  Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined && v !== ""));

function mix(o) {
  const keys = Math.max(o.keys ?? 0, 1);
  const commands = o.commands.flatMap((c) => Array(Math.max(c.weight ?? 0, 1)).fill(c.args));
  const draw = (n) => Math.floor(Math.random() * n);
  const argument = (a) => (a.includes("{n}") ? a.replaceAll("{n}", String(draw(keys))) : a);
  return () => commands[draw(commands.length)].map(argument);
}

const sleep = (millis, stopped) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, millis);
    stopped.then(() => { clearTimeout(timer); resolve(); });
  });

// run is the whole program. open(options) connects, and returns call(args), close(), dials() and pool().
export async function run(library, open) {
  let stopping = false, stop;
  const stopped = new Promise((resolve) => { stop = () => { stopping = true; resolve(); }; });
  process.on("SIGTERM", stop);
  let current; // what operations use: { o, client, draw, busy }
  const change = async (o) => {
    const before = current;
    try {
      current = { o, client: await open(o), draw: mix(o), busy: 0 };
    } catch (e) {
      return process.stderr.write(`other options: ${e.message}\n`);
    }
    const close = () => (before.busy ? setTimeout(close, 10) : before.client.close());
    close(); // when its operations have ended
  };
  const o = await readOptions(stop, change);
  try {
    current = { o, client: await open(o), draw: mix(o), busy: 0 };
  } catch (e) {
    return fail(CONNECT_EXIT, `connecting: ${e.message}`);
  }
  const tally = new Tally(o.warmup_ns ?? 0), slices = new Slices(tally.start, o.slice_ns ?? 0);
  const summary = () => tally.summary(library, current.client.dials(), current.client.pool(), slices);
  let ready = false;

  const call = async (use = current) => {
    const args = use.draw(), start = now();
    try {
      const reply = await use.client.call(args);
      tally.add(start);
      if (!ready && !o.listen) { ready = true; process.stderr.write("ready\n"); }
      return reply;
    } catch (e) {
      tally.add(start, e);
      throw e;
    }
  };

  // operation makes the calls of a chain.
  const operation = async () => {
    const use = current;
    use.busy++;
    try {
      for (let k = 0; k < Math.max(use.o.chain ?? 0, 1); k++) await call(use);
    } finally {
      use.busy--;
    }
  };

  // work makes operations at the worker's share of the rate. A worker that is late does not catch up with a burst: it
  // makes the last operation that is due, and misses those before it.
  const work = async (i) => {
    const gap = o.rate_per_second ? (o.workers / o.rate_per_second) * 1e9 : 0, waits = slices.worker();
    let due = now() + (gap * i) / o.workers;
    while (!stopping) {
      const wait = (due - now()) / 1e6;
      if (wait > 0) {
        await sleep(wait, stopped);
        if (stopping) return;
      }
      slices.due(waits, due);
      await operation().then(() => slices.succeeded(waits), () => {}); // failures are counted
      due += o.random ? -Math.log(1 - Math.random()) * gap : gap;
      for (; gap && now() - due > gap; due += gap) slices.due(waits, due);
      if (!gap) due = now();
    }
  };

  if (o.listen) await serve(o, () => call(), summary);
  const workers = Array.from({ length: o.workers ?? 0 }, (_, i) => work(i));
  if (o.duration_ns) setTimeout(stop, ((o.warmup_ns ?? 0) + o.duration_ns) / 1e6);
  await stopped;
  const second = new Promise((resolve) => setTimeout(resolve, 1000)); // a reply may never come
  await Promise.race([Promise.all(workers), second]);
  const text = summary();
  current.client.close();
  process.stdout.write(text + "\n", () => process.exit(0));
}

// serve is the HTTP service: all requests share one client, and each makes a call of the mix.
function serve(o, call, stats) {
  const server = createServer(async (request, answer) => {
    if (request.url === "/stats") return answer.end(stats());
    if (request.url !== "/") return answer.writeHead(404).end();
    try {
      answer.end(String((await call()) ?? ""));
    } catch (e) {
      answer.writeHead(502).end(String(e.message));
    }
  });
  const at = endpoint(o.listen);
  return new Promise((resolve) => {
    server.on("error", (e) => fail(2, `listening for HTTP: ${e.message}`));
    server.listen(at.port, at.host, 1024, () => {
      const { address, port } = server.address();
      process.stderr.write(`ready ${address.includes(":") ? `[${address}]` : address}:${port}\n`);
      resolve();
    });
  });
}
