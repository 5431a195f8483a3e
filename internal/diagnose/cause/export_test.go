package cause

// What tests outside of the package hold against small recordings.
var (
	CommandLock        = commandLock
	ExplainCommandLoop = explainCommandLoop
	SentByServer       = sentByServer
)
