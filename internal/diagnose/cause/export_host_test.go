package cause

// What tests of steps on the host need.
var (
	ClientQuotaStep = clientQuotaStep
	CPUList         = cpuList
)
