package recording

// MetaLimitedBy is the bottleneck of a recorded load, in one sentence; it begins with LIMITED BY if the load generator
// was the bottleneck.
const MetaLimitedBy = "load.limited_by"

// SnapshotResult is the result of a load, written at its end by the load generator: the document slowpath.bench/v1.
// With limited_by of "generator-cpu", or generator_limited, the times of calls are those of the generator as much as
// those of the server.
const SnapshotResult = "result"
