-- What the questions ask (sql/): each row once, with the names and units that the folder's index has.
CREATE VIEW IF NOT EXISTS node_name AS SELECT tenant, cluster, own, node FROM node_name_row FINAL;
CREATE VIEW IF NOT EXISTS host AS SELECT DISTINCT tenant, cluster, host, name, value FROM host_row FINAL;
CREATE VIEW IF NOT EXISTS call AS
WITH (SELECT (groupArray(tenant || '\n' || cluster || '\n' || own), groupArray(node)) FROM node_name) AS names
SELECT c.tenant AS tenant, c.cluster AS cluster, c.host AS host, toString(c.trace) AS trace, c.side AS side,
  toUnixTimestamp64Nano(c.at) AS at_ns, c.ns AS ns, c.whose AS whose, c.op AS op,
  if(position(c.node, ' ') = 0, c.node,
    transform(c.tenant || '\n' || c.cluster || '\n' || c.node, names.1, names.2, c.node)) AS node,
  c.client AS client, c.client_ip AS client_ip, c.seq AS seq, c.caller AS caller, c.request_bytes AS request_bytes,
  c.reply_bytes AS reply_bytes, c.error AS error, c.p AS p, c.state AS state, c.culprit AS culprit
FROM call_row c FINAL;
-- hour: whole hours, and minutes of the time of which no hours are made yet.
CREATE VIEW IF NOT EXISTS hour AS
WITH (SELECT (groupArray(tenant || '\n' || cluster || '\n' || own), groupArray(node)) FROM node_name) AS names
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, toUnixTimestamp(m.at) * 1000000000 AS at_ns,
  if(position(m.node, ' ') = 0, m.node,
    transform(m.tenant || '\n' || m.cluster || '\n' || m.node, names.1, names.2, m.node)) AS node,
  m.whose AS whose, m.side AS side, m.server AS server, m.calls AS calls, m.slow AS slow, m.failed AS failed,
  m.max_ns AS max_ns, m.complete AS complete,
  arrayMap(i -> toInt32(m.first + i - 1), arrayEnumerate(m.counts)) AS buckets, m.counts AS counts
FROM minute_row m FINAL WHERE m.scale = 3 AND m.at >= toStartOfHour((SELECT max(made) FROM hour_row))
UNION ALL
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, toUnixTimestamp(m.at) * 1000000000 AS at_ns,
  if(position(m.node, ' ') = 0, m.node,
    transform(m.tenant || '\n' || m.cluster || '\n' || m.node, names.1, names.2, m.node)) AS node,
  m.whose AS whose, m.side AS side, m.server AS server, m.calls AS calls, m.slow AS slow, m.failed AS failed,
  m.max_ns AS max_ns, m.complete AS complete, m.buckets AS buckets, m.counts AS counts
FROM hour_row m FINAL WHERE m.at < toStartOfHour((SELECT max(made) FROM hour_row));
-- minute: of the time of which there are no minutes any more, whole hours.
CREATE VIEW IF NOT EXISTS minute AS
WITH (SELECT (groupArray(tenant || '\n' || cluster || '\n' || own), groupArray(node)) FROM node_name) AS names
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, toUnixTimestamp(m.at) * 1000000000 AS at_ns,
  if(position(m.node, ' ') = 0, m.node,
    transform(m.tenant || '\n' || m.cluster || '\n' || m.node, names.1, names.2, m.node)) AS node,
  m.whose AS whose, m.side AS side, m.server AS server, m.calls AS calls, m.slow AS slow, m.failed AS failed,
  m.max_ns AS max_ns, m.complete AS complete,
  arrayMap(i -> toInt32(m.first + i - 1), arrayEnumerate(m.counts)) AS buckets, m.counts AS counts
FROM minute_row m FINAL WHERE m.scale = 3 AND m.at >= toStartOfDay(now() - INTERVAL 29 DAY)
UNION ALL
SELECT * FROM hour WHERE at_ns < toUnixTimestamp(toStartOfDay(now() - INTERVAL 29 DAY)) * 1000000000;
CREATE VIEW IF NOT EXISTS bucket AS
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, m.at_ns AS at_ns, m.node AS node, m.whose AS whose,
  m.side AS side, b.1 AS bucket, toInt64(b.2) AS calls
FROM minute m ARRAY JOIN arrayZip(m.buckets, m.counts) AS b WHERE b.2 > 0;
CREATE VIEW IF NOT EXISTS hour_bucket AS
SELECT m.tenant AS tenant, m.cluster AS cluster, m.host AS host, m.at_ns AS at_ns, m.node AS node, m.whose AS whose,
  m.side AS side, b.1 AS bucket, toInt64(b.2) AS calls
FROM hour m ARRAY JOIN arrayZip(m.buckets, m.counts) AS b WHERE b.2 > 0;
CREATE VIEW IF NOT EXISTS incident AS
SELECT tenant, cluster, host, id, version, toUnixTimestamp64Nano(at) AS at_ns, ns, state, verdict, cause, summary,
  slow, failed, nodes, callers FROM incident_row FINAL;
CREATE VIEW IF NOT EXISTS incident_node AS
SELECT i.tenant AS tenant, i.cluster AS cluster, i.host AS host, i.id AS incident, i.at_ns AS at_ns, i.cause AS cause,
  i.slow AS slow, if(n.node = '', i.own, n.node) AS node
FROM (SELECT tenant, cluster, host, id, at_ns, cause, slow, arrayJoin(nodes) AS own FROM incident) i
LEFT JOIN node_name n ON n.tenant = i.tenant AND n.cluster = i.cluster AND n.own = i.own;
CREATE VIEW IF NOT EXISTS finding AS
SELECT f.tenant AS tenant, f.cluster AS cluster, f.host AS host, f.incident AS incident, f.rank AS rank,
  toUnixTimestamp64Nano(f.at) AS at_ns, i.ns AS ns, f.cause AS cause, f.because AS because, f.share AS share,
  f.confidence AS confidence, f.grade AS grade, f.slow AS slow, f.title AS title, f.evidence AS evidence, f.fix AS fix,
  f.culprit AS culprit, f.nodes AS nodes
FROM finding_row f FINAL
JOIN incident i ON i.tenant = f.tenant AND i.cluster = f.cluster AND i.host = f.host AND i.id = f.incident
  AND i.version = f.version;
CREATE VIEW IF NOT EXISTS change AS
SELECT c.tenant AS tenant, c.cluster AS cluster, c.host AS host, min(toUnixTimestamp64Nano(c.at)) AS at_ns,
  min(c.within_ns) AS within_ns, c.kind AS kind, if(n.node = '', c.node, n.node) AS node, c.text AS text,
  max(c.who) AS who
FROM change_row c FINAL LEFT JOIN node_name n ON n.tenant = c.tenant AND n.cluster = c.cluster AND n.own = c.node
GROUP BY c.tenant, c.cluster, c.host, c.kind, if(n.node = '', c.node, n.node), c.text, toStartOfMinute(c.at);
CREATE VIEW IF NOT EXISTS edge AS
WITH (SELECT (groupArray(tenant || '\n' || cluster || '\n' || own), groupArray(node)) FROM node_name) AS names
SELECT e.tenant AS tenant, e.cluster AS cluster, e.host AS host, toUnixTimestamp64Nano(e.at) AS at_ns, e.ns AS ns,
  e.caller AS caller, e.unit AS unit, e.container AS container, e.pod AS pod, e.library AS library,
  if(position(e.node, ' ') = 0, e.node,
    transform(e.tenant || '\n' || e.cluster || '\n' || e.node, names.1, names.2, e.node)) AS node,
  e.calls AS calls, e.slow AS slow, e.lost_ns AS lost_ns
FROM edge_row e FINAL;
