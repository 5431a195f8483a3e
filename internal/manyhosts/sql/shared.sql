-- What the nodes and the callers that suffered have in common. One suffers whose slow calls are more than its part of
-- all slow calls, by more than three deviations of a count.
, part AS (
  SELECT 'node' AS kind, m.node AS entity, sum(m.calls) AS calls, sum(m.slow) AS slow FROM node_minute m GROUP BY m.node
  UNION ALL
  SELECT 'caller' AS kind, l.host || ' ' || l.caller AS entity, sum(l.calls) AS calls, sum(l.slow) AS slow
  FROM load l GROUP BY l.host || ' ' || l.caller
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
trait AS (
  SELECT DISTINCT 'node' AS kind, m.node AS entity, 'server' AS name, m.server AS value FROM minute m
  WHERE m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'node' AS kind, m.node AS entity, 'host' AS name, m.host AS value FROM minute m
  WHERE m.side = 'server' AND m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'node' AS kind, m.node AS entity, h.name AS name, h.value AS value FROM minute m
  JOIN host h ON h.cluster = m.cluster AND h.host = m.host
  WHERE m.side = 'server' AND m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'node' AS kind, m.node AS entity, 'change' AS name, x.text AS value FROM minute m
  JOIN change x ON x.cluster = m.cluster AND x.host = m.host
  WHERE m.side = 'server' AND m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
    AND x.at_ns >= {from:Int64} - 3600000000000 AND x.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, 'change' AS name, x.text AS value FROM load l
  JOIN change x ON x.cluster = l.cluster AND x.host = l.host
  WHERE x.kind IN ('mark', 'package', 'network') AND x.at_ns >= {from:Int64} - 3600000000000 AND x.at_ns < {to:Int64}
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, 'node' AS name, l.node AS value FROM load l
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, 'unit' AS name, l.unit AS value FROM load l
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, 'library' AS name, l.library AS value FROM load l
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, 'host' AS name, l.host AS value FROM load l
  UNION ALL
  SELECT DISTINCT 'caller' AS kind, l.host || ' ' || l.caller AS entity, h.name AS name, h.value AS value FROM load l
  JOIN host h ON h.cluster = l.cluster AND h.host = l.host
)
SELECT j.kind AS kind, t.name AS name, t.value AS value, sum(j.suffers) AS suffering, count(*) AS holders,
  max(n.suffering) AS all_suffering, max(n.entities) AS entities
FROM judged j JOIN trait t ON t.kind = j.kind AND t.entity = j.entity
JOIN (SELECT g.kind, sum(g.suffers) AS suffering, count(*) AS entities FROM judged g GROUP BY g.kind) n
  ON n.kind = j.kind
WHERE t.value <> ''
GROUP BY j.kind, t.name, t.value
HAVING sum(j.suffers) > 0
ORDER BY j.kind DESC, suffering DESC, holders, t.name, t.value LIMIT 1000
