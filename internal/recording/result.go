package recording

// MetaLimitedBy says in a sentence what limited the load of a recording; one that its generator limited begins with
// LIMITED BY.
const MetaLimitedBy = "load.limited_by"

// SnapshotResult is the result of a load, written at its end by the load generator: the document slowpath.bench/v1.
// With limited_by of "generator-cpu", or generator_limited, the calls of the recording are as much those of the
// generator as of the server.
const SnapshotResult = "result"
