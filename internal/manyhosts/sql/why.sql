-- Why calls were slow: the causes that incidents were judged to have, each with what it says where it cost most.
SELECT c.cause AS cause, c.incidents AS incidents, c.hosts AS hosts, coalesce(n.nodes, 0) AS nodes, c.slow AS slow,
  c.since_unix_ns AS since_unix_ns, c.until_unix_ns AS until_unix_ns, c.confidence AS confidence, t.cluster AS cluster,
  t.host AS host, t.incident AS incident, t.title AS title, t.evidence AS evidence, t.culprit AS culprit, t.fix AS fix
FROM (
  SELECT f.cause, count(DISTINCT f.host || ' ' || f.incident) AS incidents, count(DISTINCT f.host) AS hosts,
    sum(f.slow) AS slow, min(f.at_ns) AS since_unix_ns, max(f.at_ns + f.ns) AS until_unix_ns,
    max(f.confidence) AS confidence
  FROM cause f GROUP BY f.cause
) c
LEFT JOIN (
  SELECT f.cause, count(DISTINCT v.node) AS nodes FROM cause f
  JOIN incident_node v ON v.cluster = f.cluster AND v.host = f.host AND v.incident = f.incident
  GROUP BY f.cause
) n ON n.cause = c.cause
JOIN (
  SELECT f.*, row_number() OVER (PARTITION BY f.cause ORDER BY f.slow DESC, f.share DESC, f.host, f.incident) AS nth
  FROM cause f
) t ON t.cause = c.cause AND t.nth = 1
ORDER BY c.slow DESC, c.incidents DESC, c.cause LIMIT {limit:Int64}
