package cause

// loopCauses: the event loop is held by one command or job, or by the disk.
var loopCauses = []Cause{
	slowCommand,
	frameworkHiddenKeys,
	luaOrMultiLong,
	flushSync,
	syncFreeOfBigKey,
	bigKeyIO,
	activeExpireCycle,
	evictionCycle,
	introspectionLoad,
	forkLatency,
	aofEverysecStall,
	aofFsyncAlways,
}
