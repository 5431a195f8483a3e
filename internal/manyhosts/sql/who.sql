-- Which callers suffered: those whose slow calls lost most.
SELECT l.caller AS caller, l.host AS host, max(l.unit) AS unit, max(l.pod) AS pod, max(l.library) AS library,
  count(DISTINCT l.node) AS nodes, sum(l.calls) AS calls, sum(l.slow) AS slow,
  1.0 * sum(l.slow) / CASE WHEN sum(l.calls) > sum(l.slow) THEN sum(l.calls) ELSE sum(l.slow) END AS slow_share,
  sum(l.lost_ns) AS lost_ns, min(CASE WHEN l.slow > 0 THEN l.at_ns END) AS since_unix_ns
FROM load l
GROUP BY l.cluster, l.host, l.caller
HAVING sum(l.slow) > 0
ORDER BY sum(l.lost_ns) DESC, sum(l.slow) DESC, l.caller, l.host LIMIT {limit:Int64}
