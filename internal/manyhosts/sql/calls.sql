-- Slow calls, both ends as one: the caller's time, the server's part of it, and what the network and the two kernels
-- took. Ends are of one call by their trace; behind an address translation by the sequence number, the command, the
-- size of the request and the time to 2 s, where one alone fits. joined_share is the part of the callers' slow calls
-- whose server's end is there.
WITH one AS (
  SELECT k.cluster AS cluster, k.trace AS trace, min(k.at_ns) AS at_ns, max(k.op) AS op, max(k.seq) AS seq,
    max(k.request_bytes) AS request_bytes, max(k.caller) AS caller,
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
    AND ({caller:String} = '' OR k.caller = {caller:String} OR k.side = 'server')
  GROUP BY k.cluster, k.trace
),
pair AS (
  SELECT a.cluster AS cluster, a.trace AS trace, min(b.trace) AS of_server, max(b.server_ns) AS server_ns,
    max(b.server_state) AS server_state, max(b.server_culprit) AS server_culprit
  FROM one a JOIN one b ON b.cluster = a.cluster AND b.seq = a.seq AND b.op = a.op
    AND b.request_bytes = a.request_bytes
  WHERE a.seq > 0 AND a.server_ns = 0 AND b.caller_ns = 0 AND abs(a.at_ns - b.at_ns) <= 2000000000
  GROUP BY a.cluster, a.trace HAVING count(*) = 1
),
whole AS (
  SELECT o.at_ns AS at_ns, o.op AS op, o.caller AS caller, o.host AS host, o.node AS node, o.caller_ns AS caller_ns,
    o.caller_state AS caller_state, o.caller_culprit AS caller_culprit, o.error AS error, o.trace AS trace,
    CASE WHEN o.server_ns > 0 THEN o.server_ns ELSE coalesce(p.server_ns, 0) END AS server_ns,
    CASE WHEN o.server_ns > 0 THEN o.server_state ELSE coalesce(p.server_state, '') END AS server_state,
    CASE WHEN o.server_ns > 0 THEN o.server_culprit ELSE coalesce(p.server_culprit, '') END AS server_culprit
  FROM one o
  LEFT JOIN pair p ON p.cluster = o.cluster AND p.trace = o.trace
  LEFT JOIN pair q ON q.cluster = o.cluster AND q.of_server = o.trace
  WHERE coalesce(q.trace, '') = ''
)
SELECT c.at_ns AS at_unix_ns, c.op AS op, c.caller AS caller, c.host AS host, c.node AS node, c.caller_ns AS caller_ns,
  c.server_ns AS server_ns,
  CASE WHEN c.caller_state IN ('', 'unknown unexplained') AND c.server_state <> '' THEN c.server_state
    ELSE c.caller_state END AS state,
  CASE WHEN c.server_culprit <> '' THEN c.server_culprit ELSE c.caller_culprit END AS culprit,
  c.error AS error, c.trace AS trace,
  1.0 * sum(CASE WHEN c.caller_ns > 0 AND c.server_ns > 0 THEN 1 ELSE 0 END) OVER ()
    / sum(CASE WHEN c.caller_ns > 0 THEN 1 ELSE 0 END) OVER () AS joined_share
FROM whole c
WHERE {caller:String} = '' OR c.caller = {caller:String}
ORDER BY CASE WHEN c.caller_ns > c.server_ns THEN c.caller_ns ELSE c.server_ns END DESC, c.trace LIMIT {limit:Int64}
