-- What the exporter of the OpenTelemetry Collector writes to (clickhouseexporter 0.161, create_schema: false). These
-- tables keep nothing: the views below make rows of what came.
CREATE TABLE IF NOT EXISTS otel_traces (
  Timestamp DateTime64(9), TraceId String, SpanId String, ParentSpanId String, TraceState String,
  SpanName LowCardinality(String), SpanKind LowCardinality(String), ServiceName LowCardinality(String),
  ResourceAttributes Map(LowCardinality(String), String), ScopeName String, ScopeVersion String,
  SpanAttributes Map(LowCardinality(String), String), Duration UInt64, StatusCode LowCardinality(String),
  StatusMessage String,
  Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)),
  Links Nested (TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String))
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_logs (
  Timestamp DateTime64(9), TraceId String, SpanId String, TraceFlags UInt8, SeverityText LowCardinality(String),
  SeverityNumber UInt8, ServiceName LowCardinality(String), Body String, ResourceSchemaUrl LowCardinality(String),
  ResourceAttributes Map(LowCardinality(String), String), ScopeSchemaUrl LowCardinality(String), ScopeName String,
  ScopeVersion LowCardinality(String), ScopeAttributes Map(LowCardinality(String), String),
  LogAttributes Map(LowCardinality(String), String),
  -- The exporter leaves it out where it could not ask for the columns of this table when it started.
  EventName String DEFAULT multiIf(mapContains(LogAttributes, 'slowpath.incident.state'), 'slowpath.incident',
    mapContains(LogAttributes, 'slowpath.confidence'), 'slowpath.finding',
    mapContains(LogAttributes, 'slowpath.change.kind'), 'slowpath.change',
    mapContains(LogAttributes, 'slowpath.edge.ns'), 'slowpath.edge', '')
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_metrics_exponential_histogram (
  ResourceAttributes Map(LowCardinality(String), String), ResourceSchemaUrl String, ScopeName String,
  ScopeVersion String, ScopeAttributes Map(LowCardinality(String), String), ScopeDroppedAttrCount UInt32,
  ScopeSchemaUrl String, ServiceName LowCardinality(String), MetricName LowCardinality(String),
  MetricDescription String, MetricUnit String, Attributes Map(LowCardinality(String), String),
  StartTimeUnix DateTime64(9), TimeUnix DateTime64(9), Count UInt64, Sum Float64, Scale Int32, ZeroCount UInt64,
  PositiveOffset Int32, PositiveBucketCounts Array(UInt64), NegativeOffset Int32, NegativeBucketCounts Array(UInt64),
  Exemplars Nested (FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64,
    SpanId String, TraceId String),
  Flags UInt32, Min Float64, Max Float64, AggregationTemporality Int32
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_metrics_gauge (
  ResourceAttributes Map(LowCardinality(String), String), ResourceSchemaUrl String, ScopeName String,
  ScopeVersion String, ScopeAttributes Map(LowCardinality(String), String), ScopeDroppedAttrCount UInt32,
  ScopeSchemaUrl String, ServiceName LowCardinality(String), MetricName LowCardinality(String),
  MetricDescription String, MetricUnit String, Attributes Map(LowCardinality(String), String),
  StartTimeUnix DateTime64(9), TimeUnix DateTime64(9), Value Float64, Flags UInt32,
  Exemplars Nested (FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64,
    SpanId String, TraceId String)
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_metrics_sum (
  ResourceAttributes Map(LowCardinality(String), String), ResourceSchemaUrl String, ScopeName String,
  ScopeVersion String, ScopeAttributes Map(LowCardinality(String), String), ScopeDroppedAttrCount UInt32,
  ScopeSchemaUrl String, ServiceName LowCardinality(String), MetricName LowCardinality(String),
  MetricDescription String, MetricUnit String, Attributes Map(LowCardinality(String), String),
  StartTimeUnix DateTime64(9), TimeUnix DateTime64(9), Value Float64, Flags UInt32,
  Exemplars Nested (FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64,
    SpanId String, TraceId String),
  AggregationTemporality Int32, IsMonotonic Boolean
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_metrics_histogram (
  ResourceAttributes Map(LowCardinality(String), String), ResourceSchemaUrl String, ScopeName String,
  ScopeVersion String, ScopeAttributes Map(LowCardinality(String), String), ScopeDroppedAttrCount UInt32,
  ScopeSchemaUrl String, ServiceName LowCardinality(String), MetricName LowCardinality(String),
  MetricDescription String, MetricUnit String, Attributes Map(LowCardinality(String), String),
  StartTimeUnix DateTime64(9), TimeUnix DateTime64(9), Count UInt64, Sum Float64, BucketCounts Array(UInt64),
  ExplicitBounds Array(Float64),
  Exemplars Nested (FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64,
    SpanId String, TraceId String),
  Flags UInt32, Min Float64, Max Float64, AggregationTemporality Int32
) ENGINE = Null;
CREATE TABLE IF NOT EXISTS otel_metrics_summary (
  ResourceAttributes Map(LowCardinality(String), String), ResourceSchemaUrl String, ScopeName String,
  ScopeVersion String, ScopeAttributes Map(LowCardinality(String), String), ScopeDroppedAttrCount UInt32,
  ScopeSchemaUrl String, ServiceName LowCardinality(String), MetricName LowCardinality(String),
  MetricDescription String, MetricUnit String, Attributes Map(LowCardinality(String), String),
  StartTimeUnix DateTime64(9), TimeUnix DateTime64(9), Count UInt64, Sum Float64,
  ValueAtQuantiles Nested (Quantile Float64, Value Float64), Flags UInt32
) ENGINE = Null;

-- What is kept. What is sent again has the same key and collapses; each table has daily partitions and an end.
CREATE TABLE IF NOT EXISTS call_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String), trace FixedString(32),
  side LowCardinality(String), at DateTime64(9, 'UTC') CODEC(Delta, ZSTD), ns Int64, whose LowCardinality(String),
  op LowCardinality(String), node LowCardinality(String), client String, client_ip String, seq Int64,
  caller LowCardinality(String), unit LowCardinality(String), pod LowCardinality(String), request_bytes Int64,
  reply_bytes Int64, error LowCardinality(String), p Float64, state LowCardinality(String), culprit String,
  states Array(LowCardinality(String)), begins Array(Int64), lengths Array(Int64)
) ENGINE = ReplacingMergeTree PARTITION BY toDate(at) ORDER BY (tenant, cluster, trace, host, side)
TTL toDateTime(at) + INTERVAL 14 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS minute_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String),
  at DateTime('UTC') CODEC(Delta, ZSTD), node LowCardinality(String), whose LowCardinality(String),
  side LowCardinality(String), server LowCardinality(String), calls Int64, slow Int64, failed Int64,
  threshold_ns Int64, max_ns Int64, complete UInt8, scale Int32, first Int32, counts Array(UInt64),
  made DateTime DEFAULT now() CODEC(Delta, ZSTD), INDEX made made TYPE minmax
) ENGINE = ReplacingMergeTree PARTITION BY toDate(at) ORDER BY (tenant, cluster, node, at, host, whose)
TTL at + INTERVAL 30 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS hour_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String),
  at DateTime('UTC') CODEC(Delta, ZSTD), node LowCardinality(String), whose LowCardinality(String),
  side LowCardinality(String), server LowCardinality(String), calls Int64, slow Int64, failed Int64, max_ns Int64,
  minutes UInt8, complete UInt8, buckets Array(Int32), counts Array(UInt64), made DateTime
) ENGINE = ReplacingMergeTree(made) PARTITION BY toDate(at) ORDER BY (tenant, cluster, node, at, host, whose)
TTL at + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS node_name_row (
  tenant LowCardinality(String), cluster LowCardinality(String), own String, node String, made DateTime
) ENGINE = ReplacingMergeTree(made) ORDER BY (tenant, cluster, own) TTL made + INTERVAL 400 DAY;
CREATE TABLE IF NOT EXISTS host_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String),
  name LowCardinality(String), value String, at DateTime('UTC')
) ENGINE = ReplacingMergeTree(at) PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, name)
TTL at + INTERVAL 30 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS address_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String), ip String,
  at DateTime('UTC')
) ENGINE = ReplacingMergeTree(at) PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, ip)
TTL at + INTERVAL 30 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS incident_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String), id String,
  version Int64, at DateTime64(9, 'UTC'), ns Int64, state LowCardinality(String), verdict LowCardinality(String),
  cause LowCardinality(String), summary String, slow Int64, failed Int64, nodes Array(String), callers Array(String)
) ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, id)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS finding_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String), incident String,
  rank Int64, version Int64, at DateTime64(9, 'UTC'), cause LowCardinality(String), because LowCardinality(String),
  share Float64, confidence Float64, grade LowCardinality(String), slow Int64, title String, evidence String,
  fix String, culprit String, nodes Array(String)
) ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, incident, rank)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS change_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String),
  at DateTime64(9, 'UTC'), within_ns Int64, kind LowCardinality(String), node LowCardinality(String), text String,
  who String
) ENGINE = ReplacingMergeTree PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, at, kind, node, text)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS edge_row (
  tenant LowCardinality(String), cluster LowCardinality(String), host LowCardinality(String), entry Int64,
  at DateTime64(9, 'UTC'), ns Int64, caller LowCardinality(String), unit LowCardinality(String),
  container String, pod String, library LowCardinality(String), node LowCardinality(String), calls Int64, slow Int64,
  lost_ns Int64
) ENGINE = ReplacingMergeTree PARTITION BY toDate(at) ORDER BY (tenant, cluster, host, node, caller, entry)
TTL toDateTime(at) + INTERVAL 30 DAY SETTINGS ttl_only_drop_parts = 1;
-- What clocks that are wrong would have put into partitions of their own: how many rows were refused.
CREATE TABLE IF NOT EXISTS refused (
  tenant LowCardinality(String), host LowCardinality(String), what LowCardinality(String), day Date, refused UInt64
) ENGINE = SummingMergeTree PARTITION BY toYYYYMM(day) ORDER BY (tenant, host, what, day)
TTL day + INTERVAL 30 DAY;

CREATE MATERIALIZED VIEW IF NOT EXISTS call_in TO call_row AS
WITH SpanAttributes AS a, ResourceAttributes AS r,
  if(position(a['server.address'], ':') > 0, '[' || a['server.address'] || ']', a['server.address']) ||
    if(a['server.port'] = '', '', ':' || a['server.port']) AS address,
  if(a['slowpath.parts.lengths'] = '', [], JSONExtract(a['slowpath.parts.lengths'], 'Array(Int64)')) AS all_lengths,
  if(a['slowpath.parts.states'] = '', [], JSONExtract(a['slowpath.parts.states'], 'Array(String)')) AS all_states
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host,
  toFixedString(TraceId, 32) AS trace, if(a['slowpath.side'] = '', 'client', a['slowpath.side']) AS side,
  Timestamp AS at, toInt64(Duration) AS ns, a['slowpath.whose'] AS whose, SpanName AS op,
  if(match(address, '^(127\.|\[::1\]|/)'), host || ' ' || address, address) AS node,
  a['client.address'] || ':' || a['client.port'] AS client, a['client.address'] AS client_ip,
  toInt64OrZero(a['slowpath.tcp.seq']) AS seq, a['slowpath.client'] AS caller, a['slowpath.client.unit'] AS unit,
  a['slowpath.client.pod'] AS pod, toInt64OrZero(a['slowpath.request.size']) AS request_bytes,
  toInt64OrZero(a['slowpath.reply.size']) AS reply_bytes, a['db.response.status_code'] AS error,
  toFloat64OrZero(a['slowpath.sampling.p']) AS p,
  if(empty(all_lengths), '', all_states[indexOf(all_lengths, arrayMax(all_lengths))]) AS state,
  a['slowpath.culprit'] AS culprit, all_states AS states,
  if(a['slowpath.parts.begins'] = '', [], JSONExtract(a['slowpath.parts.begins'], 'Array(Int64)')) AS begins,
  all_lengths AS lengths
FROM otel_traces
WHERE ServiceName = 'slowpath' AND Timestamp > now() - INTERVAL 14 DAY AND Timestamp < now() + INTERVAL 1 DAY
  AND Duration <= 86400000000000; -- a day; what is negative is more, without its sign
CREATE MATERIALIZED VIEW IF NOT EXISTS minute_in TO minute_row AS
WITH Attributes AS a, ResourceAttributes AS r,
  if(position(a['server.address'], ':') > 0, '[' || a['server.address'] || ']', a['server.address']) ||
    if(a['server.port'] = '', '', ':' || a['server.port']) AS address
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host,
  toDateTime(StartTimeUnix) AS at, if(match(address, '^(127\.|\[::1\]|/)'), host || ' ' || address, address) AS node,
  a['slowpath.whose'] AS whose, a['slowpath.side'] AS side, a['slowpath.server'] AS server, toInt64(Count) AS calls,
  toInt64OrZero(a['slowpath.slow_calls']) AS slow, toInt64OrZero(a['slowpath.failed_calls']) AS failed,
  toInt64(toFloat64OrZero(a['slowpath.slow.threshold']) * 1e9) AS threshold_ns, toInt64(Max * 1e9) AS max_ns,
  toUInt8(a['slowpath.complete'] = 'true') AS complete, Scale AS scale, PositiveOffset AS first,
  PositiveBucketCounts AS counts
FROM otel_metrics_exponential_histogram
WHERE MetricName = 'slowpath.minute' AND StartTimeUnix > now() - INTERVAL 31 DAY
  AND StartTimeUnix < now() + INTERVAL 1 DAY
  AND Count <= 1000000000000 AND length(PositiveBucketCounts) <= 1000
  AND arrayAll(c -> c <= Count, PositiveBucketCounts)
  AND Max < 1000000000 AND toInt64OrZero(Attributes['slowpath.slow_calls']) BETWEEN 0 AND 1000000000000
  AND toInt64OrZero(Attributes['slowpath.failed_calls']) BETWEEN 0 AND 1000000000000;
-- Each hour the hours are made again of which minutes came since, however late.
CREATE MATERIALIZED VIEW IF NOT EXISTS hour_in REFRESH EVERY 1 HOUR APPEND TO hour_row AS
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, toStartOfHour(m.at) AS at, m.node AS node,
  m.whose AS whose, any(m.side) AS side, any(m.server) AS server, sum(m.calls) AS calls, sum(m.slow) AS slow,
  sum(m.failed) AS failed, max(m.max_ns) AS max_ns, toUInt8(count()) AS minutes, min(m.complete) AS complete,
  (sumMap(arrayMap(i -> toInt32(m.first + i - 1), arrayEnumerate(m.counts)), m.counts) AS summed).1 AS buckets,
  summed.2 AS counts, now() AS made
FROM minute_row m FINAL
WHERE m.scale = 3 AND toStartOfHour(m.at) IN (
  SELECT DISTINCT toStartOfHour(n.at) FROM minute_row n
  WHERE n.made + INTERVAL 1 HOUR >= (SELECT max(h.made) FROM hour_row h)
)
GROUP BY m.tenant, m.cluster, m.host, toStartOfHour(m.at), m.node, m.whose;
CREATE MATERIALIZED VIEW IF NOT EXISTS host_in TO host_row AS
SELECT m.r['slowpath.tenant'] AS tenant, m.r['slowpath.cluster'] AS cluster, m.r['host.name'] AS host,
  m.named.1 AS name, m.named.2 AS value, m.at AS at
FROM (
  SELECT ResourceAttributes AS r, toDateTime(StartTimeUnix) AS at, arrayJoin([
    ('slowpath', r['service.version']), ('kernel', Attributes['slowpath.kernel']),
    ('zone', r['cloud.availability_zone']), ('region', r['cloud.region']), ('k8s node', r['k8s.node.name']),
    ('instance type', r['host.type']), ('image', r['host.image.id'])]) AS named
  FROM otel_metrics_exponential_histogram
  WHERE MetricName = 'slowpath.minute' AND StartTimeUnix > now() - INTERVAL 31 DAY
    AND StartTimeUnix < now() + INTERVAL 1 DAY
) m WHERE m.named.2 <> '';
CREATE MATERIALIZED VIEW IF NOT EXISTS address_in TO address_row AS
SELECT ResourceAttributes['slowpath.tenant'] AS tenant, ResourceAttributes['slowpath.cluster'] AS cluster,
  ResourceAttributes['host.name'] AS host,
  arrayJoin(JSONExtract(ResourceAttributes['host.ip'], 'Array(String)')) AS ip, toDateTime(StartTimeUnix) AS at
FROM otel_metrics_exponential_histogram
WHERE MetricName = 'slowpath.minute' AND ResourceAttributes['host.ip'] <> ''
  AND StartTimeUnix > now() - INTERVAL 31 DAY AND StartTimeUnix < now() + INTERVAL 1 DAY;
-- Events, and whether their numbers can be.
CREATE TABLE IF NOT EXISTS event (
  Timestamp DateTime64(9), EventName LowCardinality(String), Body String,
  ResourceAttributes Map(LowCardinality(String), String), LogAttributes Map(LowCardinality(String), String),
  can_be UInt8
) ENGINE = Null;
CREATE MATERIALIZED VIEW IF NOT EXISTS event_in TO event AS
WITH LogAttributes AS a
SELECT Timestamp, EventName, Body, ResourceAttributes, LogAttributes,
  toInt64OrZero(a['slowpath.calls']) BETWEEN 0 AND 1000000000000
    AND toInt64OrZero(a['slowpath.slow_calls']) BETWEEN 0 AND 1000000000000
    AND toInt64OrZero(a['slowpath.failed_calls']) BETWEEN 0 AND 1000000000000
    AND toInt64OrZero(a['slowpath.lost.ns']) BETWEEN 0 AND 1000000000000000000
    AND toInt64OrZero(a['slowpath.incident.ns']) BETWEEN 0 AND 34560000000000000
    AND toInt64OrZero(a['slowpath.edge.ns']) BETWEEN 0 AND 34560000000000000
    AND toFloat64OrZero(a['slowpath.excess_share']) BETWEEN 0 AND 1
    AND toFloat64OrZero(a['slowpath.confidence']) BETWEEN 0 AND 1 AS can_be
FROM otel_logs WHERE startsWith(EventName, 'slowpath.');
CREATE MATERIALIZED VIEW IF NOT EXISTS refused_events_in TO refused AS
SELECT ResourceAttributes['slowpath.tenant'] AS tenant, ResourceAttributes['host.name'] AS host, 'events' AS what,
  today() AS day, count() AS refused
FROM event WHERE NOT can_be
GROUP BY tenant, host;
CREATE MATERIALIZED VIEW IF NOT EXISTS incident_in TO incident_row AS
WITH LogAttributes AS a, ResourceAttributes AS r
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host,
  a['slowpath.incident.id'] AS id, toInt64OrZero(a['slowpath.incident.version']) AS version, Timestamp AS at,
  toInt64OrZero(a['slowpath.incident.ns']) AS ns, a['slowpath.incident.state'] AS state,
  a['slowpath.verdict'] AS verdict, a['slowpath.cause'] AS cause, Body AS summary,
  toInt64OrZero(a['slowpath.slow_calls']) AS slow, toInt64OrZero(a['slowpath.failed_calls']) AS failed,
  arrayMap(n -> if(match(n, '^(127\.|\[::1\]|/)'), host || ' ' || n, n),
    if(a['slowpath.nodes'] = '', [], JSONExtract(a['slowpath.nodes'], 'Array(String)'))) AS nodes,
  if(a['slowpath.callers'] = '', [], JSONExtract(a['slowpath.callers'], 'Array(String)')) AS callers
FROM event
WHERE can_be AND EventName = 'slowpath.incident'
  AND Timestamp > now() - INTERVAL 400 DAY AND Timestamp < now() + INTERVAL 1 DAY;
CREATE MATERIALIZED VIEW IF NOT EXISTS finding_in TO finding_row AS
WITH LogAttributes AS a, ResourceAttributes AS r
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host,
  a['slowpath.incident.id'] AS incident, toInt64OrZero(a['slowpath.rank']) AS rank,
  toInt64OrZero(a['slowpath.incident.version']) AS version, Timestamp AS at, a['slowpath.cause'] AS cause,
  a['slowpath.because'] AS because, toFloat64OrZero(a['slowpath.excess_share']) AS share,
  toFloat64OrZero(a['slowpath.confidence']) AS confidence, a['slowpath.grade'] AS grade,
  toInt64OrZero(a['slowpath.slow_calls']) AS slow, Body AS title, a['slowpath.evidence'] AS evidence,
  a['slowpath.fix'] AS fix,
  if(a['slowpath.culprit.processes'] = '', '', JSONExtract(a['slowpath.culprit.processes'], 'Array(String)')[1])
    AS culprit,
  arrayMap(n -> if(match(n, '^(127\.|\[::1\]|/)'), host || ' ' || n, n),
    if(a['slowpath.nodes'] = '', [], JSONExtract(a['slowpath.nodes'], 'Array(String)'))) AS nodes
FROM event
WHERE can_be AND EventName = 'slowpath.finding'
  AND Timestamp > now() - INTERVAL 400 DAY AND Timestamp < now() + INTERVAL 1 DAY;
CREATE MATERIALIZED VIEW IF NOT EXISTS change_in TO change_row AS
WITH LogAttributes AS a, ResourceAttributes AS r, a['server.address'] AS address
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host, Timestamp AS at,
  toInt64OrZero(a['slowpath.change.within_ns']) AS within_ns, a['slowpath.change.kind'] AS kind,
  if(match(address, '^(127\.|\[::1\]|/)'), host || ' ' || address, address) AS node, Body AS text,
  arrayStringConcat(if(a['slowpath.change.by'] = '', [], JSONExtract(a['slowpath.change.by'], 'Array(String)')), ', ')
    AS who
FROM event
WHERE can_be AND EventName = 'slowpath.change'
  AND Timestamp > now() - INTERVAL 400 DAY AND Timestamp < now() + INTERVAL 1 DAY;
CREATE MATERIALIZED VIEW IF NOT EXISTS edge_in TO edge_row AS
WITH LogAttributes AS a, ResourceAttributes AS r, a['server.address'] AS address
SELECT r['slowpath.tenant'] AS tenant, r['slowpath.cluster'] AS cluster, r['host.name'] AS host,
  toInt64OrZero(a['slowpath.entry.id']) AS entry, Timestamp AS at, toInt64OrZero(a['slowpath.edge.ns']) AS ns,
  a['slowpath.client'] AS caller, a['slowpath.client.unit'] AS unit, a['slowpath.client.container'] AS container,
  a['slowpath.client.pod'] AS pod, a['slowpath.client.library'] AS library,
  if(match(address, '^(127\.|\[::1\]|/)'), host || ' ' || address, address) AS node,
  toInt64OrZero(a['slowpath.calls']) AS calls, toInt64OrZero(a['slowpath.slow_calls']) AS slow,
  toInt64OrZero(a['slowpath.lost.ns']) AS lost_ns
FROM event
WHERE can_be AND EventName = 'slowpath.edge'
  AND Timestamp > now() - INTERVAL 31 DAY AND Timestamp < now() + INTERVAL 1 DAY;
CREATE MATERIALIZED VIEW IF NOT EXISTS refused_calls_in TO refused AS
SELECT ResourceAttributes['slowpath.tenant'] AS tenant, ResourceAttributes['host.name'] AS host, 'calls' AS what,
  today() AS day, count() AS refused
FROM otel_traces
WHERE ServiceName = 'slowpath' AND NOT (Timestamp > now() - INTERVAL 14 DAY AND Timestamp < now() + INTERVAL 1 DAY
  AND Duration <= 86400000000000)
GROUP BY tenant, host;
CREATE MATERIALIZED VIEW IF NOT EXISTS refused_minutes_in TO refused AS
SELECT ResourceAttributes['slowpath.tenant'] AS tenant, ResourceAttributes['host.name'] AS host, 'minutes' AS what,
  today() AS day, count() AS refused
FROM otel_metrics_exponential_histogram
WHERE MetricName = 'slowpath.minute'
  AND NOT (StartTimeUnix > now() - INTERVAL 31 DAY AND StartTimeUnix < now() + INTERVAL 1 DAY
  AND Count <= 1000000000000 AND length(PositiveBucketCounts) <= 1000
  AND arrayAll(c -> c <= Count, PositiveBucketCounts)
  AND Max < 1000000000 AND toInt64OrZero(Attributes['slowpath.slow_calls']) BETWEEN 0 AND 1000000000000
  AND toInt64OrZero(Attributes['slowpath.failed_calls']) BETWEEN 0 AND 1000000000000)
GROUP BY tenant, host;
-- The names of nodes at their own host, such as those of its loopback device, with the names that callers use: the ends
-- of the same calls say which are the same, and the addresses that one host alone has.
CREATE MATERIALIZED VIEW IF NOT EXISTS node_name_in REFRESH EVERY 1 MINUTE APPEND TO node_name_row AS
SELECT u.tenant AS tenant, u.cluster AS cluster, u.own AS own, min(u.node) AS node, now() AS made
FROM (
  SELECT s.tenant AS tenant, s.cluster AS cluster, s.node AS own, c.node AS node
  FROM call_row s JOIN call_row c ON c.tenant = s.tenant AND c.cluster = s.cluster AND c.trace = s.trace
  WHERE s.at > now() - INTERVAL 2 HOUR AND s.side = 'server' AND c.side = 'client' AND s.node <> c.node
    AND position(s.node, ' ') > 0
  UNION ALL
  SELECT a.tenant AS tenant, a.cluster AS cluster, s.node AS own, c.node AS node
  FROM (
    SELECT r.tenant AS tenant, r.cluster AS cluster, r.ip AS ip, min(r.host) AS host FROM address_row r
    GROUP BY r.tenant, r.cluster, r.ip HAVING uniqExact(r.host) = 1
  ) a
  JOIN (
    SELECT DISTINCT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, m.node AS node,
      replaceRegexpOne(m.node, '^\\[?([^\\]]*)\\]?:\\d+$', '\\1') AS ip, extract(m.node, ':(\\d+)$') AS port
    FROM minute_row m WHERE m.at > now() - INTERVAL 2 HOUR AND position(m.node, ' ') = 0
  ) c ON c.tenant = a.tenant AND c.cluster = a.cluster AND c.ip = a.ip
  JOIN (
    SELECT DISTINCT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, m.node AS node,
      extract(m.node, ':(\\d+)$') AS port
    FROM minute_row m WHERE m.at > now() - INTERVAL 2 HOUR AND position(m.node, ' ') > 0
  ) s ON s.tenant = a.tenant AND s.cluster = a.cluster AND s.host = a.host AND s.port = c.port
  WHERE c.host <> a.host
) u
GROUP BY u.tenant, u.cluster, u.own;
