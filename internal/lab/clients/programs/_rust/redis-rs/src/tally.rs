//! Counts calls and operations, and makes the summary of docs/clients.md.
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

const KEPT_BITS: u32 = 8;
const SLICES: usize = 12_000;
const WAITS: usize = 1 << 16;

#[derive(Serialize, Default, Clone)]
struct Second {
    calls: u64,
    errors: u64,
}

#[derive(Serialize, Default, Clone)]
struct Slice {
    operations: u64,
    failed: u64,
    ns: u64,
    max_ns: u64,
}

#[derive(Default)]
struct Counts {
    calls: u64,
    errors: u64,
    max_ns: u64,
    buckets: BTreeMap<u64, u64>,
    kinds: BTreeMap<String, u64>,
    last_error: String,
    seconds: Vec<Second>,
    slices: Vec<Slice>,
    waits: Vec<Vec<Instant>>, // of each worker: when the operations were due that have no result
}

pub struct Tally {
    start: Instant,
    unix: Duration,
    every: Duration, // length of a slice; 0: none
    counts: Mutex<Counts>,
}

/// The eight leading binary digits of a duration are kept.
fn floor(ns: u64) -> u64 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(KEPT_BITS);
    ns >> shift << shift
}

impl Tally {
    pub fn new(warmup: Duration, every: Duration, workers: usize) -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let counts = Counts { waits: vec![Vec::new(); workers], ..Counts::default() };
        Tally { start: Instant::now() + warmup, unix: unix + warmup, every, counts: Mutex::new(counts) }
    }

    /// Counts a call that ends now, unless it began before the start.
    pub fn add(&self, begin: Instant, error: Option<(String, String)>) {
        let end = Instant::now();
        if begin < self.start {
            return;
        }
        let took = (end - begin).as_nanos() as u64;
        let second = (end - self.start).as_secs() as usize;
        let mut c = self.counts.lock().unwrap();
        c.calls += 1;
        c.max_ns = c.max_ns.max(took);
        *c.buckets.entry(floor(took)).or_default() += 1;
        if c.seconds.len() <= second {
            c.seconds.resize(second + 1, Second::default());
        }
        c.seconds[second].calls += 1;
        if let Some((kind, text)) = error {
            c.seconds[second].errors += 1;
            c.errors += 1;
            *c.kinds.entry(kind).or_default() += 1;
            c.last_error = text;
        }
    }

    pub fn due(&self, worker: usize, at: Instant) {
        let mut c = self.counts.lock().unwrap();
        if !self.every.is_zero() && c.waits[worker].len() < WAITS {
            c.waits[worker].push(at);
        }
    }

    /// The last operation that was due has a result, and so have those before it, which failed.
    pub fn succeeded(&self, worker: usize) {
        let mut c = self.counts.lock().unwrap();
        let failed = c.waits[worker].len().saturating_sub(1);
        self.end(&mut c, worker, failed);
    }

    /// Counts all operations of a worker that wait. The first of them failed.
    fn end(&self, c: &mut Counts, worker: usize, failed: usize) {
        let now = Instant::now();
        for (i, due) in std::mem::take(&mut c.waits[worker]).into_iter().enumerate() {
            let Some(since) = due.checked_duration_since(self.start) else { continue };
            let k = (since.as_nanos() / self.every.as_nanos()) as usize;
            if k >= SLICES {
                continue;
            }
            if c.slices.len() <= k {
                c.slices.resize(k + 1, Slice::default());
            }
            let took = now.saturating_duration_since(due).as_nanos() as u64;
            let s = &mut c.slices[k];
            s.operations += 1;
            s.failed += u64::from(i < failed);
            s.ns += took;
            s.max_ns = s.max_ns.max(took);
        }
    }

    /// The summary. Operations that still wait have failed.
    pub fn summary(&self, library: &str, dials: u64, connections: u64) -> serde_json::Value {
        let mut c = self.counts.lock().unwrap();
        for worker in 0..c.waits.len() {
            let all = c.waits[worker].len();
            self.end(&mut c, worker, all);
        }
        serde_json::json!({
            "schema": crate::SCHEMA, "library": library, "calls": c.calls, "errors": c.errors,
            "errors_by_kind": c.kinds, "last_error": c.last_error, "start_unix_ns": self.unix.as_nanos() as u64,
            "ran_ns": Instant::now().saturating_duration_since(self.start).as_nanos() as u64,
            "per_second": c.seconds, "histogram": c.buckets.iter().collect::<Vec<_>>(), "max_ns": c.max_ns,
            "cpu_ns": cpu_ns(), "dials": dials, "pool": {"connections": connections, "idle": 0}, "slices": c.slices,
        })
    }
}

/// The CPU time of this process.
fn cpu_ns() -> u64 {
    // SAFETY: getrusage fills the struct that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}
