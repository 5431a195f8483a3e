-- What an incident was judged to have.
SELECT f.rank AS rank, f.cause AS cause, f.because AS because, f.share AS excess_share, f.confidence AS confidence,
  f.grade AS grade, f.slow AS slow, f.title AS title, f.evidence AS evidence, f.culprit AS culprit, f.fix AS fix
FROM finding f
WHERE f.host = {host:String} AND f.incident = {incident:String}
  AND ({cluster:String} = '' OR f.cluster = {cluster:String})
ORDER BY f.rank LIMIT {limit:Int64}
