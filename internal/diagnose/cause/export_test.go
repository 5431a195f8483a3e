package cause

// What tests outside the package need.
var (
	CommandLock        = commandLock
	ExplainCommandLoop = explainCommandLoop
	SentByServer       = sentByServer
)
