//! A client program of the lab (docs/clients.md): redis-rs on tokio, with one connection that all tasks share.
mod tally;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisError, Value};
use serde::Deserialize;
use std::io::BufRead;
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tally::Tally;
use tokio::sync::{mpsc, watch, Mutex};

const SCHEMA: &str = "slowpath.client/v1";
const BAD_OPTIONS: i32 = 2;
const UNSUPPORTED: i32 = 3;
const CONNECT: i32 = 4;
const VERSION: &str = "0.32.7"; // of Cargo.toml

#[derive(Deserialize, Default)]
#[serde(default)]
struct Options {
    schema: String,
    addresses: Vec<String>,
    mode: String,
    password: String,
    name: String,
    db: i64,
    tls: bool,
    listen: String,
    commands: Vec<Command>,
    keys: u64,
    workers: usize,
    rate_per_second: f64,
    random: bool,
    warmup_ns: u64,
    duration_ns: u64,
    slice_ns: u64,
    chain: u64,
    dial_timeout_ns: u64,
    read_timeout_ns: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Command {
    args: Vec<String>,
    weight: usize,
}

fn fail(code: i32, text: impl std::fmt::Display) -> ! {
    eprintln!("{}", text.to_string().replace('\n', " "));
    exit(code)
}

fn parse(line: &str) -> Result<Options, String> {
    let o: Options = serde_json::from_str(line).map_err(|e| e.to_string())?;
    if o.schema != SCHEMA || o.addresses.is_empty() || o.commands.iter().all(|c| c.args.is_empty()) {
        return Err("schema, addresses or commands".into());
    }
    Ok(o)
}

/// A pseudo-random number in [0, 1), by xorshift.
fn random(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// The library with the options that it was opened with.
struct Library {
    o: Options,
    mix: Vec<usize>, // indexes of commands, each as often as its weight
    client: redis::Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    dials: Arc<AtomicU64>,
}

impl Library {
    fn new(o: Options, dials: Arc<AtomicU64>) -> Result<Self, RedisError> {
        let mut mix = Vec::new();
        for (i, c) in o.commands.iter().enumerate() {
            mix.extend(std::iter::repeat_n(i, c.weight.max(1)));
        }
        let mut info = redis::IntoConnectionInfo::into_connection_info(format!("redis://{}", o.addresses[0]))?;
        info.redis.db = o.db;
        info.redis.password = (!o.password.is_empty()).then(|| o.password.clone());
        let client = redis::Client::open(info)?;
        Ok(Library { o, mix, client, connection: Mutex::new(None), dials })
    }

    /// The connection, which is opened where there is none.
    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut kept = self.connection.lock().await;
        if let Some(c) = &*kept {
            return Ok(c.clone());
        }
        let mut config = AsyncConnectionConfig::new();
        if self.o.dial_timeout_ns > 0 {
            config = config.set_connection_timeout(Duration::from_nanos(self.o.dial_timeout_ns));
        }
        if self.o.read_timeout_ns > 0 {
            config = config.set_response_timeout(Duration::from_nanos(self.o.read_timeout_ns));
        }
        self.dials.fetch_add(1, Relaxed);
        let mut c = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        if !self.o.name.is_empty() {
            let _: Value = redis::cmd("CLIENT").arg("SETNAME").arg(&self.o.name).query_async(&mut c).await?;
        }
        *kept = Some(c.clone());
        Ok(c)
    }

    /// Makes one call of the mix.
    async fn call(&self, seed: &mut u64) -> Result<(), RedisError> {
        let of = &self.o.commands[self.mix[(random(seed) * self.mix.len() as f64) as usize]];
        let n = (random(seed) * self.o.keys.max(1) as f64) as u64;
        let mut command = redis::Cmd::new();
        for a in &of.args {
            command.arg(a.replace("{n}", &n.to_string()));
        }
        let mut c = self.connection().await?;
        let result: Result<Value, RedisError> = command.query_async(&mut c).await;
        if result.as_ref().is_err_and(|e| e.is_unrecoverable_error()) {
            *self.connection.lock().await = None; // the next call opens another
        }
        result.map(|_| ())
    }
}

/// The kind of an error. That of an error reply is its first word.
fn kind(e: &RedisError) -> String {
    if e.is_timeout() {
        return "timeout".into();
    }
    if e.kind() == ErrorKind::IoError {
        return "connection".into();
    }
    match e.code() {
        Some(code) if code.len() > 1 && code.len() <= 20 && code.chars().all(|c| c.is_ascii_uppercase()) => code.into(),
        _ => "other".into(),
    }
}

struct Program {
    now: RwLock<Arc<Library>>,
    tally: Tally,
    ready: AtomicBool,
}

impl Program {
    /// Makes the calls of a chain, with the options of now.
    async fn operation(&self, seed: &mut u64) -> bool {
        let library = self.now.read().unwrap().clone();
        let mut ok = true;
        for _ in 0..library.o.chain.max(1) {
            let start = Instant::now();
            let failed = library.call(seed).await.err();
            ok &= failed.is_none();
            self.tally.add(start, failed.map(|e| (kind(&e), e.to_string())));
            if ok && !self.ready.swap(true, Relaxed) {
                eprintln!("ready");
            }
        }
        ok
    }

    /// A worker that is late does not catch up with a burst: it makes the last operation that is due, and misses those
    /// before it.
    async fn work(self: Arc<Self>, id: usize, mut stop: watch::Receiver<bool>) {
        let first = self.now.read().unwrap().clone();
        let (rate, all) = (first.o.rate_per_second, first.o.workers as f64);
        let gap = if rate > 0.0 { all / rate } else { 0.0 };
        let mut due = Instant::now() + Duration::from_secs_f64(gap * id as f64 / all);
        let mut seed = 0x9e37_79b9_7f4a_7c15 ^ (id as u64 + 1) << 32 ^ std::process::id() as u64;
        let is_random = first.o.random;
        drop(first); // it closes when other options come
        loop {
            tokio::select! {
                _ = tokio::time::sleep_until(due.into()) => {}
                _ = stop.changed() => return,
            }
            self.tally.due(id, due);
            if self.operation(&mut seed).await {
                self.tally.succeeded(id);
            }
            let step = if is_random { -(1.0 - random(&mut seed)).ln() * gap } else { gap };
            due += Duration::from_secs_f64(step);
            while gap > 0.0 && due.elapsed().as_secs_f64() > gap {
                self.tally.due(id, due);
                due += Duration::from_secs_f64(gap);
            }
            if gap == 0.0 {
                due = Instant::now();
            }
        }
    }
}

/// Reads lines in a thread of its own, until the input ends.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Follows further lines until the input ends.
async fn follow(p: &Program, lines: &mut mpsc::UnboundedReceiver<String>, dials: &Arc<AtomicU64>) {
    while let Some(line) = lines.recv().await {
        let next = parse(&line).and_then(|o| Library::new(o, dials.clone()).map_err(|e| e.to_string()));
        match next {
            Ok(library) => *p.now.write().unwrap() = Arc::new(library),
            Err(e) => eprintln!("other options: {e}"),
        }
    }
}

#[tokio::main]
async fn main() {
    let mut lines = read_lines();
    let line = lines.recv().await.unwrap_or_default();
    let o = parse(&line).unwrap_or_else(|e| fail(BAD_OPTIONS, format!("reading the options from standard input: {e}")));
    if !o.mode.is_empty() && o.mode != "standalone" {
        fail(UNSUPPORTED, format!("mode {} is not supported by this program", o.mode));
    }
    if o.tls || !o.listen.is_empty() {
        fail(UNSUPPORTED, "TLS, or the HTTP service, is not supported by this program");
    }
    let (workers, duration) = (o.workers, Duration::from_nanos(o.warmup_ns + o.duration_ns));
    let timed = o.duration_ns > 0;
    let tally = Tally::new(Duration::from_nanos(o.warmup_ns), Duration::from_nanos(o.slice_ns), workers);
    let dials = Arc::new(AtomicU64::new(0));
    let library = Library::new(o, dials.clone()).unwrap_or_else(|e| fail(BAD_OPTIONS, e));
    if let Err(e) = library.connection().await {
        fail(CONNECT, format!("connecting: {e}"));
    }
    let p = Arc::new(Program { now: RwLock::new(Arc::new(library)), tally, ready: AtomicBool::new(false) });
    let (stop, stopped) = watch::channel(false);
    let tasks: Vec<_> = (0..workers).map(|id| tokio::spawn(p.clone().work(id, stopped.clone()))).collect();
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    tokio::select! {
        _ = follow(&p, &mut lines, &dials) => {}
        _ = tokio::time::sleep(duration), if timed => {}
        _ = term.recv() => {}
    }
    let _ = stop.send(true);
    let end = Instant::now() + Duration::from_secs(1); // a reply may never come
    for t in tasks {
        let _ = tokio::time::timeout_at(end.into(), t).await;
    }
    println!("{}", p.tally.summary(&format!("redis-rs {VERSION}"), dials.load(Relaxed), 1));
    exit(0)
}
