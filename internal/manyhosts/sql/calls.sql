-- Slow calls, both ends as one: the caller's time, the server's part of it, and what the network and the two kernels
-- took. Ends are of one call by their trace; behind an address translation by the sequence number, the command, the
-- size of the request and the time to 2 s, where one end alone fits the other. joined_share is the part of the callers'
-- slow calls whose server's end is there.
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
-- alike counts the ends that may be of one call. One whose ends are both there is counted alone, by whole.
alike AS (
  SELECT o.*, count(*) OVER w AS ends, sum(CASE WHEN o.caller_ns > 0 THEN 1 ELSE 0 END) OVER w AS callers,
    max(o.at_ns) OVER w - min(o.at_ns) OVER w AS apart_ns, max(o.server_ns) OVER w AS their_ns,
    max(o.server_state) OVER w AS their_state, max(o.server_culprit) OVER w AS their_culprit
  FROM (
    SELECT e.*, CASE WHEN e.seq = 0 OR e.caller_ns > 0 AND e.server_ns > 0 THEN e.trace ELSE '' END AS whole
    FROM one e
  ) o
  WINDOW w AS (PARTITION BY o.cluster, o.seq, o.op, o.request_bytes, o.whole)
),
joined AS (
  SELECT a.at_ns AS at_ns, a.op AS op, a.caller AS caller, a.host AS host, a.node AS node, a.caller_ns AS caller_ns,
    a.caller_state AS caller_state, a.caller_culprit AS caller_culprit, a.error AS error, a.trace AS trace,
    CASE WHEN a.pair = 1 THEN a.their_ns ELSE a.server_ns END AS server_ns,
    CASE WHEN a.pair = 1 THEN a.their_state ELSE a.server_state END AS server_state,
    CASE WHEN a.pair = 1 THEN a.their_culprit ELSE a.server_culprit END AS server_culprit
  FROM (
    SELECT p.*, CASE WHEN p.ends = 2 AND p.callers = 1 AND p.apart_ns <= 2000000000 THEN 1 ELSE 0 END AS pair
    FROM alike p
  ) a
  WHERE a.pair = 0 OR a.caller_ns > 0
)
SELECT c.at_ns AS at_unix_ns, c.op AS op, c.caller AS caller, c.host AS host, c.node AS node, c.caller_ns AS caller_ns,
  c.server_ns AS server_ns,
  CASE WHEN c.caller_state IN ('', 'unknown unexplained') AND c.server_state <> '' THEN c.server_state
    ELSE c.caller_state END AS state,
  CASE WHEN c.server_culprit <> '' THEN c.server_culprit ELSE c.caller_culprit END AS culprit,
  c.error AS error, c.trace AS trace,
  1.0 * sum(CASE WHEN c.caller_ns > 0 AND c.server_ns > 0 THEN 1 ELSE 0 END) OVER ()
    / sum(CASE WHEN c.caller_ns > 0 THEN 1 ELSE 0 END) OVER () AS joined_share
FROM joined c
WHERE {caller:String} = '' OR c.caller = {caller:String}
ORDER BY CASE WHEN c.caller_ns > c.server_ns THEN c.caller_ns ELSE c.server_ns END DESC, c.trace LIMIT {limit:Int64}
