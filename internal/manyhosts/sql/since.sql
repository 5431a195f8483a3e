-- Since when calls are slow: time by time, how many calls were slow, at how many nodes, and what began then.
SELECT m.step_ns AS begin_unix_ns, sum(m.calls) AS calls, sum(m.slow) AS slow,
  1.0 * sum(m.slow) / sum(m.calls) AS slow_share, sum(m.failed) AS failed,
  count(DISTINCT CASE WHEN m.slow > 0 THEN m.node END) AS slow_nodes, count(DISTINCT m.node) AS nodes,
  coalesce(max(i.incidents), 0) AS incidents_begin, coalesce(max(i.cause), '') AS cause
FROM (SELECT n.*, n.at_ns - n.at_ns % {step:Int64} AS step_ns FROM node_minute n) m
LEFT JOIN (
  SELECT v.at_ns - v.at_ns % {step:Int64} AS step_ns, count(DISTINCT v.host || ' ' || v.id) AS incidents,
    max(v.cause) AS cause
  FROM incident v WHERE v.at_ns >= {from:Int64} AND v.at_ns < {to:Int64}
    AND ({cluster:String} = '' OR v.cluster = {cluster:String})
  GROUP BY v.at_ns - v.at_ns % {step:Int64}
) i ON i.step_ns = m.step_ns
GROUP BY m.step_ns
HAVING sum(m.calls) > 0
ORDER BY m.step_ns LIMIT {limit:Int64}
