//! Counts what the application does, and reports it as lines of JSON once per second (docs/apps.md).
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SCHEMA: &str = "slowpath.app/v1";
const KEPT_BITS: u32 = 8;
const ERROR_LIMIT: usize = 200;

#[derive(Default)]
struct Second {
    done: u64,
    errors: u64,
    sum: u64,
    max: u64,
    last_error: String,
    histogram: BTreeMap<u64, u64>,
}

#[derive(Default)]
pub struct Meter {
    open: Mutex<BTreeMap<(u64, &'static str), Second>>,
}

pub fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Meter {
    /// Counts an operation that ends now.
    pub fn add(&self, operation: &'static str, took: Duration, error: Option<String>) {
        let ns = took.as_nanos() as u64;
        let shift = (64 - ns.leading_zeros()).saturating_sub(KEPT_BITS);
        let mut open = self.open.lock().unwrap();
        let s = open.entry((unix_now().as_secs(), operation)).or_default();
        s.done += 1;
        s.sum += ns;
        s.max = s.max.max(ns);
        *s.histogram.entry(ns >> shift << shift).or_default() += 1;
        if let Some(text) = error {
            s.errors += 1;
            let plain = |c: char| if c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { ' ' };
            s.last_error = text.chars().take(ERROR_LIMIT).map(plain).collect();
        }
    }

    /// Writes the lines of the seconds before a time.
    pub fn write(&self, before: u64) {
        let mut open = self.open.lock().unwrap();
        let rest = open.split_off(&(before, ""));
        let over = std::mem::replace(&mut *open, rest);
        let mut text = String::new();
        for ((unix, operation), s) in over {
            let buckets: Vec<String> = s.histogram.iter().map(|(v, n)| format!("[{v},{n}]")).collect();
            text += &format!(
                "{{\"schema\":\"{SCHEMA}\",\"operation\":\"{operation}\",\"unix_second\":{unix},\"done\":{},\
                 \"errors\":{},\"sum_ns\":{},\"max_ns\":{},\"last_error\":\"{}\",\"histogram\":[{}]}}\n",
                s.done, s.errors, s.sum, s.max, s.last_error, buckets.join(",")
            );
        }
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush()); // nobody may read it any more
    }
}
