package scenario

// nPlusOneThreads looks like pool-exhausted-wait-threads: all connections are in use all the time. But there is one for
// each thread, and what these wait for are their round trips.
var nPlusOneThreads = Scenario{
	ID:    "n-plus-one-roundtrips-threads",
	Cause: "n-plus-one-roundtrips",
	Title: "Jedis with maxTotal 3 for 3 threads that read document after document, 2 ms away",
	Make:  jedisPool(3, 3),
}
