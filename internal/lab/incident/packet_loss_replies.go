package incident

// packetLossReplies loses segments on their way back: the callers' sockets count nothing, the server's do.
var packetLossReplies = Incident{
	ID:    "packet-loss-replies",
	Cause: "packet-loss-rto",
	Title: "a path that loses 3 % of the server's segments",
	Make:  lossy("output", "sport"),
}
