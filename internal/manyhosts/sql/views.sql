-- What several questions begin with.
-- node_minute: the calls of users to a node in a minute, each once: at the server's end, or else at those of all
-- callers. A call that is slow for its caller may not be for its server: the end with more slow calls counts.
-- course: the minutes of that time, or of a long time the hours.
-- load: what each caller made of calls to each node, without the addresses of hosts whose own agents say more.
WITH course AS (
  SELECT m.cluster, m.host, m.at_ns, m.node, m.whose, m.side, m.server, m.calls, m.slow, m.failed FROM minute m
  WHERE {long:Int64} = 0 AND m.at_ns >= {from:Int64} AND m.at_ns < {to:Int64}
  UNION ALL
  SELECT m.cluster, m.host, m.at_ns, m.node, m.whose, m.side, m.server, m.calls, m.slow, m.failed FROM hour m
  WHERE {long:Int64} = 1 AND m.at_ns >= {from:Int64} - {from:Int64} % 3600000000000 AND m.at_ns < {to:Int64}
),
node_minute AS (
  SELECT e.cluster, e.node, e.at_ns, max(e.calls) AS calls, max(e.slow) AS slow, max(e.failed) AS failed
  FROM (
    SELECT m.cluster, m.node, m.at_ns, m.side, sum(m.calls) AS calls, sum(m.slow) AS slow, sum(m.failed) AS failed
    FROM course m
    WHERE m.whose = 'users' AND ({cluster:String} = '' OR m.cluster = {cluster:String})
      AND ({node:String} = '' OR m.node = {node:String})
    GROUP BY m.cluster, m.node, m.at_ns, m.side
  ) e
  GROUP BY e.cluster, e.node, e.at_ns
),
known AS (
  SELECT DISTINCT c.cluster, c.client_ip FROM call c
  WHERE c.side = 'client' AND c.at_ns >= {from:Int64} AND c.at_ns < {to:Int64}
),
load AS (
  SELECT g.* FROM edge g LEFT JOIN known k ON k.cluster = g.cluster AND k.client_ip = g.caller
  WHERE coalesce(k.client_ip, '') = '' AND g.at_ns >= {from:Int64} AND g.at_ns < {to:Int64}
    AND ({cluster:String} = '' OR g.cluster = {cluster:String}) AND ({node:String} = '' OR g.node = {node:String})
    AND ({caller:String} = '' OR g.caller = {caller:String})
),
cause AS (
  SELECT f.* FROM finding f
  WHERE f.because = '' AND f.at_ns >= {from:Int64} AND f.at_ns < {to:Int64}
    AND ({cluster:String} = '' OR f.cluster = {cluster:String})
)
