-- Slow calls, both ends as one: the caller's time, the server's part of it, and what the network and the two kernels
-- took. joined_share is the part of all slow calls of callers whose server's end is there.
SELECT c.at_ns AS at_unix_ns, c.op AS op, c.caller AS caller, c.host AS host, c.node AS node, c.caller_ns AS caller_ns,
  c.server_ns AS server_ns,
  CASE WHEN c.caller_state IN ('', 'unknown unexplained') AND c.server_state <> '' THEN c.server_state
    ELSE c.caller_state END AS state,
  CASE WHEN c.server_culprit <> '' THEN c.server_culprit ELSE c.caller_culprit END AS culprit,
  c.error AS error, c.trace AS trace,
  avg(CASE WHEN c.caller_ns > 0 AND c.server_ns > 0 THEN 1.0 ELSE 0.0 END) OVER () AS joined_share
FROM (
  SELECT k.trace, min(k.at_ns) AS at_ns, max(k.op) AS op, max(k.caller) AS caller,
    max(CASE WHEN k.side <> 'server' THEN k.host ELSE '' END) AS host, max(k.node) AS node,
    max(CASE WHEN k.side <> 'server' THEN k.ns ELSE 0 END) AS caller_ns,
    max(CASE WHEN k.side <> 'client' THEN k.ns ELSE 0 END) AS server_ns,
    max(CASE WHEN k.side <> 'server' THEN k.state ELSE '' END) AS caller_state,
    max(CASE WHEN k.side <> 'client' THEN k.state ELSE '' END) AS server_state,
    max(CASE WHEN k.side <> 'server' THEN k.culprit ELSE '' END) AS caller_culprit,
    max(CASE WHEN k.side <> 'client' THEN k.culprit ELSE '' END) AS server_culprit, max(k.error) AS error
  FROM call k
  WHERE k.whose = 'users' AND k.at_ns >= {from:Int64} AND k.at_ns < {to:Int64}
    AND ({cluster:String} = '' OR k.cluster = {cluster:String}) AND ({node:String} = '' OR k.node = {node:String})
    AND ({caller:String} = '' OR k.caller = {caller:String})
  GROUP BY k.cluster, k.trace
) c
ORDER BY CASE WHEN c.caller_ns > c.server_ns THEN c.caller_ns ELSE c.server_ns END DESC, c.trace LIMIT {limit:Int64}
