//! Orders in a stream (docs/apps.md): a shop adds them, and the consumers of a group process and acknowledge them.
//! The time of a job is from when its order was added to when it was acknowledged.
mod meter;

use deadpool_redis::{Config, Pool, Runtime};
use meter::{unix_now, Meter};
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, RedisResult};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{signal, SignalKind};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const STREAM: &str = "orders";
const GROUP: &str = "billing";
const KEPT: usize = 10_000;

/// A pseudo-random number in [0, 1), by xorshift: a service needs no crate for the gaps of its load.
fn random(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

async fn add_order(pool: &Pool) -> Result<(), Failure> {
    let mut c = pool.get().await?;
    let cap = redis::streams::StreamMaxlen::Approx(KEPT);
    let fields = [("item", "book".to_string()), ("added", unix_now().as_nanos().to_string())];
    let _: String = c.xadd_maxlen(STREAM, cap, "*", &fields).await?;
    let _: i64 = c.incr("orders:count", 1).await?;
    Ok(())
}

async fn shop(pool: Pool, meter: Arc<Meter>, gap: f64, mut seed: u64) {
    loop {
        tokio::time::sleep(Duration::from_secs_f64(-(1.0 - random(&mut seed)).ln() * gap)).await;
        let start = Instant::now();
        let result = add_order(&pool).await;
        meter.add("add", start.elapsed(), result.err().map(|e| e.to_string()));
    }
}

async fn read_orders(pool: &Pool, meter: &Meter, name: &str) -> Result<(), Failure> {
    let mut c = pool.get().await?;
    let options = StreamReadOptions::default().group(GROUP, name).count(10).block(1000);
    let found: Option<StreamReadReply> = c.xread_options(&[STREAM], &[">"], &options).await?;
    for key in found.map(|r| r.keys).unwrap_or_default() {
        for order in key.ids {
            let added: String = order.get("added").unwrap_or_default();
            let _: i64 = c.xack(STREAM, GROUP, &[&order.id]).await?;
            let added = Duration::from_nanos(added.parse::<u64>()?);
            meter.add("job", unix_now().saturating_sub(added), None);
        }
    }
    Ok(())
}

async fn billing(pool: Pool, meter: Arc<Meter>, name: String) {
    loop {
        let start = Instant::now();
        if let Err(e) = read_orders(&pool, &meter, &name).await {
            meter.add("job", start.elapsed(), Some(e.to_string()));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let pool = Config::from_url(std::env::var("REDIS_URL")?).create_pool(Some(Runtime::Tokio1))?;
    let rate: f64 = std::env::var("APP_RATE")?.parse()?;
    let meter = Arc::new(Meter::default());
    let made: RedisResult<()> = pool.get().await?.xgroup_create_mkstream(STREAM, GROUP, "$").await;
    match made {
        Err(e) if e.code() != Some("BUSYGROUP") => return Err(e.into()),
        _ => {}
    }
    for i in 1..=3u64 {
        let seed = unix_now().as_nanos() as u64 ^ i;
        tokio::spawn(shop(pool.clone(), meter.clone(), 3.0 / rate, seed));
        tokio::spawn(billing(pool.clone(), meter.clone(), format!("billing{i}")));
    }
    let mut term = signal(SignalKind::terminate())?;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = tick.tick() => meter.write(unix_now().as_secs()),
        }
    }
    meter.write(u64::MAX);
    std::process::exit(0) // a consumer may wait for a second more
}
