package recording

// introductions are the commands by which clients introduce themselves on a new connection, by the names that the tap
// has: of a subcommand eight bytes.
var introductions = map[string]bool{
	"AUTH": true, "HELLO": true, "SELECT": true, "READONLY": true, "COMMAND": true, "COMMAND DOCS": true,
	"CLIENT SETNAME": true, "CLIENT SETINFO": true, "CLIENT ID": true, "CLIENT TRACKING": true,
	"CLIENT NO-EVICT": true, "CLIENT NO-TOUCH": true, "CLIENT MAINT_NO": true, "CLIENT CAPA": true,
}

// asked are the commands by which clients ask about the server before their first call. Elsewhere they are calls.
var asked = map[string]bool{
	"PING": true, "INFO": true, "CLUSTER SLOTS": true, "CLUSTER SHARDS": true, "CLUSTER NODES": true, "ROLE": true,
}

// Introduces reports whether a client introduces itself by a command, which is no call of the application.
func Introduces(op string) bool { return introductions[op] }

// OfHandshake reports whether a command may be a part of the handshake with which a connection begins.
func OfHandshake(op string) bool { return introductions[op] || asked[op] }

// ExpectedReply reports whether an error reply with this first word is one that clients expect: libraries ask what a
// server can do (CLIENT SETINFO, HELLO, MAINT_NOTIFICATIONS), and go on where it cannot. A client whose login or
// database is refused cannot go on.
func ExpectedReply(op, code string) bool {
	switch {
	case op == "AUTH" || op == "SELECT" || code == "WRONGPASS" || code == "NOAUTH":
		return false
	case code == "ERR" || code == "NOPERM" || code == "NOPROTO":
		return introductions[op]
	}
	return false
}
