-- The rows of a folder of recordings. Each table ending in _row has the file that a row is from: recordings of one
-- host may overlap. The views have each row once, and the columns that the questions ask (sql/).
CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT UNIQUE, bytes INTEGER, changed_ns INTEGER, failed TEXT);
CREATE TABLE host_row(file INTEGER, cluster TEXT, host TEXT, name TEXT, value TEXT);
CREATE TABLE address_row(file INTEGER, cluster TEXT, host TEXT, ip TEXT);
CREATE TABLE call_row(file INTEGER, cluster TEXT, host TEXT, trace TEXT, side TEXT, at_ns INTEGER, ns INTEGER,
  whose TEXT, op TEXT, node TEXT, client TEXT, client_ip TEXT, seq INTEGER, caller TEXT, request_bytes INTEGER,
  reply_bytes INTEGER, error TEXT, p REAL, state TEXT, culprit TEXT);
CREATE INDEX call_trace ON call_row(trace);
CREATE TABLE minute_row(file INTEGER, cluster TEXT, host TEXT, at_ns INTEGER, node TEXT, whose TEXT, side TEXT,
  server TEXT, calls INTEGER, slow INTEGER, failed INTEGER, threshold_ns INTEGER, max_ns INTEGER, complete INTEGER,
  buckets TEXT);
CREATE TABLE incident_row(file INTEGER, cluster TEXT, host TEXT, id TEXT, at_ns INTEGER, ns INTEGER, state TEXT,
  verdict TEXT, cause TEXT, summary TEXT, slow INTEGER, failed INTEGER, nodes TEXT, callers TEXT);
CREATE TABLE finding_row(file INTEGER, cluster TEXT, host TEXT, incident TEXT, rank INTEGER, at_ns INTEGER, ns INTEGER,
  cause TEXT, because TEXT, share REAL, confidence REAL, grade TEXT, slow INTEGER, title TEXT, evidence TEXT, fix TEXT,
  culprit TEXT, nodes TEXT);
CREATE TABLE change_row(file INTEGER, cluster TEXT, host TEXT, at_ns INTEGER, within_ns INTEGER, kind TEXT, node TEXT,
  text TEXT, who TEXT);
CREATE TABLE edge_row(file INTEGER, cluster TEXT, host TEXT, at_ns INTEGER, ns INTEGER, caller TEXT, unit TEXT,
  container TEXT, pod TEXT, library TEXT, node TEXT, calls INTEGER, slow INTEGER, lost_ns INTEGER);

CREATE VIEW host AS SELECT DISTINCT cluster, host, name, value FROM host_row;
CREATE VIEW call AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster, host, trace, side ORDER BY file) n
  FROM call_row) WHERE n = 1;
CREATE VIEW minute AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster, host, at_ns, node, whose
  ORDER BY calls DESC, file) n FROM minute_row) WHERE n = 1;
CREATE VIEW bucket AS SELECT m.cluster, m.host, m.at_ns, m.node, m.whose, m.side, json_extract(b.value, '$[0]') bucket,
  json_extract(b.value, '$[1]') calls FROM minute m, json_each(m.buckets) b;
CREATE VIEW hour AS SELECT * FROM minute; -- there are as many
CREATE VIEW hour_bucket AS SELECT * FROM bucket;
CREATE VIEW incident AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster, host, id ORDER BY file) n
  FROM incident_row) WHERE n = 1;
CREATE VIEW incident_node AS SELECT i.cluster, i.host, i.id AS incident, i.at_ns, i.cause, i.slow, n.value AS node
  FROM incident i, json_each(i.nodes) n;
CREATE VIEW finding AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster, host, incident, rank
  ORDER BY file) n FROM finding_row) WHERE n = 1;
CREATE VIEW change AS SELECT cluster, host, min(at_ns) AS at_ns, min(within_ns) AS within_ns, kind, node, text,
  max(who) AS who FROM change_row GROUP BY cluster, host, kind, node, text, at_ns / 60000000000;
CREATE VIEW edge AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster, host, at_ns, caller, node
  ORDER BY file) n FROM edge_row) WHERE n = 1;
