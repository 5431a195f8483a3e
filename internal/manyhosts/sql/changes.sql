-- What was changed, and how many incidents began at the same host within ten minutes.
SELECT c.at_ns AS at_unix_ns, c.within_ns AS within_ns, c.kind AS kind, c.host AS host, c.node AS node, c.text AS text,
  c.who AS who, coalesce(i.incidents, 0) AS incidents_after
FROM change c
LEFT JOIN (
  SELECT x.cluster AS cluster, x.host AS host, x.at_ns AS at_ns, x.text AS text, count(DISTINCT v.id) AS incidents
  FROM change x JOIN incident v ON v.cluster = x.cluster AND v.host = x.host
  WHERE v.at_ns >= x.at_ns AND v.at_ns < x.at_ns + 600000000000
  GROUP BY x.cluster, x.host, x.at_ns, x.text
) i ON i.cluster = c.cluster AND i.host = c.host AND i.at_ns = c.at_ns AND i.text = c.text
WHERE c.at_ns >= {from:Int64} AND c.at_ns < {to:Int64}
  AND ({cluster:String} = '' OR c.cluster = {cluster:String}) AND ({node:String} = '' OR c.node = {node:String})
ORDER BY c.at_ns, c.host, c.text LIMIT {limit:Int64}
