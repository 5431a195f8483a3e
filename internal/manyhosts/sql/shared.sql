-- What the nodes and the callers that suffered have in common. One suffers whose slow calls are more than its part of
-- all slow calls, by more than three deviations of a count.
, caller AS (
  SELECT l.cluster || ' ' || l.host || ' ' || l.caller AS entity, l.cluster AS cluster, l.host AS host, l.node AS node,
    l.unit AS unit, l.library AS library, l.calls AS calls, l.slow AS slow
  FROM load l
),
part AS (
  SELECT 'node' AS kind, m.cluster || ' ' || m.node AS entity, sum(m.calls) AS calls, sum(m.slow) AS slow
  FROM node_minute m GROUP BY m.cluster || ' ' || m.node
  UNION ALL
  SELECT 'caller' AS kind, c.entity AS entity, sum(c.calls) AS calls, sum(c.slow) AS slow
  FROM caller c GROUP BY c.entity
),
total AS (SELECT p.kind, sum(p.calls) AS calls, sum(p.slow) AS slow FROM part p GROUP BY p.kind),
judged AS (
  SELECT e.kind AS kind, e.entity AS entity,
    CASE WHEN e.slow > e.fair AND (e.slow - e.fair) * (e.slow - e.fair) > 9 * e.fair THEN 1 ELSE 0 END AS suffers
  FROM (
    SELECT p.kind, p.entity, p.slow, 1.0 * p.calls * t.slow / t.calls AS fair
    FROM part p JOIN total t ON t.kind = p.kind WHERE t.calls > 0
  ) e
),
at_host AS (
  SELECT DISTINCT 'node' AS kind, m.cluster || ' ' || m.node AS entity, m.cluster AS cluster, m.host AS host
  FROM minute m WHERE m.side = 'server' AND m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, c.entity AS entity, c.cluster AS cluster, c.host AS host FROM caller c
),
changed AS (
  SELECT DISTINCT x.cluster AS cluster, x.host AS host, x.node AS node, x.text AS text FROM change x
  WHERE x.at_ns >= {from:Int64} - 3600000000000 AND x.at_ns < {to:Int64}
),
of_host AS (
  SELECT h.cluster AS cluster, h.host AS host, h.name AS name, h.value AS value FROM host h
  UNION ALL
  SELECT DISTINCT h.cluster AS cluster, h.host AS host, 'host' AS name, h.host AS value FROM host h
  UNION ALL
  SELECT x.cluster AS cluster, x.host AS host, 'change' AS name, x.text AS value FROM changed x WHERE x.node = ''
),
trait AS (
  SELECT a.kind AS kind, a.entity AS entity, o.name AS name, o.value AS value
  FROM at_host a JOIN of_host o ON o.cluster = a.cluster AND o.host = a.host
  UNION ALL
  SELECT DISTINCT 'node' AS kind, m.cluster || ' ' || m.node AS entity, 'server' AS name, m.server AS value
  FROM minute m WHERE m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'node' AS kind, x.cluster || ' ' || x.node AS entity, 'change' AS name, x.text AS value
  FROM changed x WHERE x.node <> ''
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, c.entity AS entity, 'node' AS name, c.node AS value FROM caller c
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, c.entity AS entity, 'unit' AS name, c.unit AS value FROM caller c
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, c.entity AS entity, 'library' AS name, c.library AS value FROM caller c
)
SELECT j.kind AS kind, t.name AS name, t.value AS value, sum(j.suffers) AS suffering, count(*) AS holders,
  max(n.sufferers) AS all_suffering, max(n.entities) AS entities
FROM judged j JOIN trait t ON t.kind = j.kind AND t.entity = j.entity
JOIN (SELECT g.kind, sum(g.suffers) AS sufferers, count(*) AS entities FROM judged g GROUP BY g.kind) n
  ON n.kind = j.kind
WHERE t.value <> ''
GROUP BY j.kind, t.name, t.value
HAVING sum(j.suffers) > 0
ORDER BY j.kind DESC, sum(j.suffers) DESC, count(*), t.name, t.value LIMIT 1000
