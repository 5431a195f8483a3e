package incident

// loopIncidents hold the event loop.
var loopIncidents = []Incident{
	slowCommand,
}
