package incident

// loopIncidents hold the event loop.
var loopIncidents = []Incident{
	slowCommand,
	frameworkHiddenKeys,
	slowCommandNoSlowlog,
	luaLong,
	multiLong,
	flushSync,
	syncFree,
	syncFreeByExpiry,
	bigKeyIO,
	bigKeyIOCollection,
	activeExpireCycle,
	evictionCycle,
	introspectionLoad,
	introspectionMonitor,
	forkLatency,
	aofEverysecStall,
	aofFsyncAlways,
}
