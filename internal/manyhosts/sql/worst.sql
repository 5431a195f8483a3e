-- Which nodes lost their callers most: the nodes with the most slow calls.
SELECT n.node AS node, n.cluster AS cluster, n.calls AS calls, n.slow AS slow, n.failed AS failed,
  1.0 * n.slow / n.calls AS slow_share, coalesce(q.p99_ns, 0) AS p99_ns, coalesce(w.callers, 0) AS slow_callers,
  n.since_unix_ns AS since_unix_ns, coalesce(i.cause, '') AS cause
FROM (
  SELECT m.cluster, m.node, sum(m.calls) AS calls, sum(m.slow) AS slow, sum(m.failed) AS failed,
    coalesce(min(CASE WHEN m.slow > 0 THEN m.at_ns END), 0) AS since_unix_ns
  FROM node_minute m GROUP BY m.cluster, m.node
) n
LEFT JOIN (
  SELECT p.cluster, p.node, max(p.p99_ns) AS p99_ns FROM (
    SELECT b.cluster, b.node, b.side, min(pow(2.0, (b.bucket + 0.5) / 8) * 1000000000) AS p99_ns FROM (
      SELECT s.cluster, s.node, s.side, s.bucket,
        sum(s.calls) OVER (PARTITION BY s.cluster, s.node, s.side ORDER BY s.bucket) AS below,
        sum(s.calls) OVER (PARTITION BY s.cluster, s.node, s.side) AS total
      FROM (
        SELECT t.cluster, t.node, t.side, t.bucket, sum(t.calls) AS calls FROM (
          SELECT k.cluster, k.node, k.side, k.bucket, k.calls FROM bucket k
          WHERE {long:Int64} = 0 AND k.whose = 'users' AND k.at_ns >= {from:Int64} AND k.at_ns < {to:Int64}
          UNION ALL
          SELECT k.cluster, k.node, k.side, k.bucket, k.calls FROM hour_bucket k
          WHERE {long:Int64} = 1 AND k.whose = 'users'
            AND k.at_ns >= {from:Int64} - {from:Int64} % 3600000000000 AND k.at_ns < {to:Int64}
        ) t
        GROUP BY t.cluster, t.node, t.side, t.bucket
      ) s
    ) b WHERE b.below >= 0.99 * b.total GROUP BY b.cluster, b.node, b.side
  ) p GROUP BY p.cluster, p.node
) q ON q.cluster = n.cluster AND q.node = n.node
LEFT JOIN (
  SELECT l.cluster, l.node, count(DISTINCT CASE WHEN l.slow > 0 THEN l.host || ' ' || l.caller END) AS callers
  FROM load l GROUP BY l.cluster, l.node
) w ON w.cluster = n.cluster AND w.node = n.node
LEFT JOIN (
  SELECT r.cluster, r.node, r.cause FROM (
    SELECT x.cluster, x.node, x.cause,
      row_number() OVER (PARTITION BY x.cluster, x.node ORDER BY x.slow DESC, x.cause) AS nth
    FROM (
      SELECT v.cluster, v.node, v.cause, sum(v.slow) AS slow FROM incident_node v
      WHERE v.cause <> '' AND v.at_ns >= {from:Int64} AND v.at_ns < {to:Int64} GROUP BY v.cluster, v.node, v.cause
    ) x
  ) r WHERE r.nth = 1
) i ON i.cluster = n.cluster AND i.node = n.node
WHERE n.calls > 0
ORDER BY n.slow DESC, n.failed DESC, n.node LIMIT {limit:Int64}
