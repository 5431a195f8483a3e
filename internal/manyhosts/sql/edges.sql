-- Who calls whom.
SELECT l.caller AS caller, l.host AS host, max(l.unit) AS unit, max(l.pod) AS pod, l.node AS node,
  sum(l.calls) AS calls, sum(l.slow) AS slow, sum(l.lost_ns) AS lost_ns
FROM load l
GROUP BY l.cluster, l.host, l.caller, l.node
ORDER BY sum(l.lost_ns) DESC, sum(l.calls) DESC, l.caller, l.host, l.node LIMIT {limit:Int64}
