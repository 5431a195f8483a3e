-- What the nodes and the callers that suffered have in common. One suffers whose slow calls are more than its part of
-- all slow calls, by more than three deviations of a count.
, caller AS (
  SELECT l.cluster || ' ' || l.host || ' ' || l.caller AS entity, l.cluster AS cluster, l.host AS host, l.node AS node,
    l.unit AS unit, l.library AS library, sum(l.calls) AS calls, sum(l.slow) AS slow
  FROM load l GROUP BY l.cluster, l.host, l.caller, l.node, l.unit, l.library
),
part AS (
  SELECT 'node' AS kind, m.cluster || ' ' || m.node AS entity, sum(m.calls) AS calls, sum(m.slow) AS slow
  FROM node_minute m GROUP BY m.cluster || ' ' || m.node
  UNION ALL
  SELECT 'caller' AS kind, c.entity AS entity, sum(c.calls) AS calls, sum(c.slow) AS slow
  FROM caller c GROUP BY c.entity
),
judged AS (
  SELECT s.kind AS kind, s.entity AS entity, s.suffers AS suffers,
    sum(s.suffers) OVER (PARTITION BY s.kind) AS sufferers, count(*) OVER (PARTITION BY s.kind) AS entities
  FROM (
    SELECT e.kind AS kind, e.entity AS entity,
      CASE WHEN e.slow > e.fair AND (e.slow - e.fair) * (e.slow - e.fair) > 9 * e.fair THEN 1 ELSE 0 END AS suffers
    FROM (
      SELECT w.kind AS kind, w.entity AS entity, w.slow AS slow, 1.0 * w.calls * w.all_slow / w.all_calls AS fair
      FROM (
        SELECT p.kind AS kind, p.entity AS entity, p.calls AS calls, p.slow AS slow,
          sum(p.calls) OVER (PARTITION BY p.kind) AS all_calls, sum(p.slow) OVER (PARTITION BY p.kind) AS all_slow
        FROM part p
      ) w WHERE w.all_calls > 0
    ) e
  ) s
),
at_host AS (
  SELECT DISTINCT 'node' AS kind, m.cluster || ' ' || m.node AS entity, m.cluster AS cluster, m.host AS host
  FROM course m WHERE m.side = 'server'
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
  FROM course m
  UNION ALL
  SELECT DISTINCT 'node' AS kind, x.cluster || ' ' || x.node AS entity, 'change' AS name, x.text AS value
  FROM changed x WHERE x.node <> ''
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, c.entity AS entity, n.name AS name,
    CASE n.name WHEN 'node' THEN c.node WHEN 'unit' THEN c.unit ELSE c.library END AS value
  FROM caller c CROSS JOIN (SELECT 'node' AS name UNION ALL SELECT 'unit' AS name UNION ALL SELECT 'library' AS name) n
)
SELECT j.kind AS kind, t.name AS name, t.value AS value, sum(j.suffers) AS suffering, count(*) AS holders,
  max(j.sufferers) AS all_suffering, max(j.entities) AS entities
FROM judged j JOIN trait t ON t.kind = j.kind AND t.entity = j.entity
WHERE t.value <> '' AND j.sufferers > 0
GROUP BY j.kind, t.name, t.value
HAVING sum(j.suffers) > 0
ORDER BY j.kind DESC, sum(j.suffers) DESC, count(*), t.name, t.value LIMIT 1000
