-- What was judged.
SELECT i.at_ns AS at_unix_ns, i.ns AS duration_ns, i.cluster AS cluster, i.host AS host, i.id AS id,
  i.verdict AS verdict, i.cause AS cause, i.slow AS slow, i.failed AS failed, i.summary AS summary
FROM incident i
WHERE i.at_ns >= {from:Int64} AND i.at_ns < {to:Int64} AND ({cluster:String} = '' OR i.cluster = {cluster:String})
  AND ({incident:String} = '' OR i.host = {host:String} AND i.id = {incident:String})
ORDER BY i.at_ns, i.host, i.id LIMIT {limit:Int64}
