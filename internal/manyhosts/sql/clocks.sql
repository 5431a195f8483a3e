-- How far the clocks of two hosts are apart: a request is at its server after its caller sent it, and a reply at its
-- caller after its server sent it. So each call bounds by how much the server's clock is ahead, and all of them
-- together leave least_ns to most_ns. Both are exact to some ten microseconds: a request can arrive before its send
-- returns. Least far above most: a clock was set, or drifts, in this time.
SELECT a.host AS caller_host, b.host AS server_host, count(*) AS calls,
  max(b.at_ns + b.ns - a.at_ns - a.ns) AS least_ns, min(b.at_ns - a.at_ns) AS most_ns
FROM call a JOIN call b ON b.cluster = a.cluster AND b.trace = a.trace
WHERE a.side = 'client' AND b.side = 'server' AND a.host <> b.host AND a.at_ns >= {from:Int64} AND a.at_ns < {to:Int64}
  AND ({cluster:String} = '' OR a.cluster = {cluster:String})
GROUP BY a.cluster, a.host, b.host
ORDER BY count(*) DESC, a.host, b.host LIMIT {limit:Int64}
