package scenario

// packetLossReplies loses segments of replies: the retransmissions are counted at the server's sockets, not at the
// callers'.
var packetLossReplies = Scenario{
	ID:    "packet-loss-replies",
	Cause: "packet-loss-rto",
	Title: "a path that loses 3 % of the server's segments",
	Make:  lossy("output", "sport"),
}
