// Counts what an application does, and reports it as lines of JSON once per second (docs/apps.md).
const SCHEMA = "slowpath.app/v1";
const KEPT_BITS = 8;
const ERROR_LIMIT = 200;

export const url = process.env.REDIS_URL;
export const rate = Number(process.env.APP_RATE);
export const twemproxy = process.env.APP_PROXY === "twemproxy";

// where is the server as HOST, PORT and password, for libraries that take no URL.
export const where = () => {
  const u = new URL(url);
  return {
    host: u.hostname, port: Number(u.port), password: decodeURIComponent(u.password) || undefined,
    tls: u.protocol === "rediss:" ? {} : undefined,
  };
};

// listening is HOST and PORT of the HTTP service.
export const listening = () => {
  const [host, port] = process.env.APP_LISTEN.split(":");
  return { host, port: Number(port) };
};

// floor keeps the leading binary digits of a number of nanoseconds.
function floor(ns) {
  const bits = ns < 2 ** 32 ? 32 - Math.clz32(ns) : 64 - Math.clz32(ns / 2 ** 32);
  const unit = 2 ** Math.max(bits - KEPT_BITS, 0);
  return ns - (ns % unit);
}

const seconds = new Map();

function add(operation, took, error) {
  const second = Math.floor(Date.now() / 1000), key = `${second} ${operation}`;
  let line = seconds.get(key);
  if (!line) {
    line = {
      schema: SCHEMA, operation, unix_second: second, done: 0, errors: 0, sum_ns: 0, max_ns: 0, histogram: new Map(),
    };
    seconds.set(key, line);
  }
  line.done++;
  line.sum_ns += took;
  line.max_ns = Math.max(line.max_ns, took);
  const value = floor(took);
  line.histogram.set(value, (line.histogram.get(value) ?? 0) + 1);
  if (error) {
    line.errors++;
    line.last_error = String(error.message ?? error).slice(0, ERROR_LIMIT);
  }
}

// measure does an operation and counts it, also if it fails.
export async function measure(operation, act) {
  const start = process.hrtime.bigint();
  let failed;
  try {
    return await act();
  } catch (e) {
    failed = e;
  } finally {
    add(operation, Number(process.hrtime.bigint() - start), failed);
  }
}

function write(before) {
  let text = "";
  for (const [key, line] of seconds) {
    if (line.unix_second >= before) continue;
    line.histogram = [...line.histogram].sort((a, b) => a[0] - b[0]);
    text += JSON.stringify(line) + "\n";
    seconds.delete(key);
  }
  process.stdout.write(text);
}

// run calls act at the application's rate, by some callers with exponential gaps, until SIGTERM.
export function run(callers, act) {
  let stopping = false;
  const pause = () => new Promise((resolve) =>
    setTimeout(resolve, -Math.log(1 - Math.random()) * (callers / rate) * 1000));
  const caller = async () => {
    for (;;) {
      await pause();
      if (stopping) return;
      await act();
    }
  };
  for (let i = 0; i < callers; i++) caller();
  setInterval(() => write(Math.floor(Date.now() / 1000)), 1000);
  process.on("SIGTERM", () => {
    stopping = true;
    write(Infinity);
    process.stdout.write("", () => process.exit(0));
  });
}

// serve makes the HTTP service end with SIGTERM.
export function serve(app) {
  const { host, port } = listening();
  app.listen(port, host);
  process.on("SIGTERM", () => process.exit(0));
}
