package series

// Counters of the tap's kernel programs, since the begin of the watch.
var (
	TapCallsServer   = Tap("calls.server")
	TapCallsClient   = Tap("calls.client")
	TapCallsOwn      = Tap("calls.own")      // slowpath's
	TapCallsObserver = Tap("calls.observer") // of other slowpaths
	TapUnaligned     = Tap("unaligned")      // replies whose request is not certain
	TapSlow          = Tap("slow")
	TapSampled       = Tap("sampled")
	TapReads         = Tap("reads")
	TapLeftOut       = Tap("left_out")   // reads
	TapDropped       = Tap("dropped")    // reports
	TapUnreported    = Tap("unreported") // slow calls: there were too many
	TapMerged        = Tap("merged")
	TapExcess        = Tap("excess")
	TapGarbage       = Tap("garbage")
	TapNoBuffer      = Tap("no_buffer")
	TapIovecs        = Tap("iovecs")
	TapNoMemory      = Tap("no_memory")
	TapThreadsFull   = Tap("threads_full")
	TapGaps          = Tap("gaps")
	TapConnsFull     = Tap("conns_full")
	TapUnfollowed    = Tap("unfollowed")
	TapForgotten     = Tap("forgotten") // connections and threads: a table was full

	// What the programs cost in a part of the watch, by the kernel's own measurement.
	TapHookRuns     = Tap("hook_runs")
	TapHookTime     = Name{SourceTap, SubjectSelf, "tap.hook_ns", Nanoseconds}
	TapHookMeasured = Name{SourceTap, SubjectSelf, "tap.hook_measured_ns", Nanoseconds} // how long that part was
)

// Tap is a counter under the kernel programs' own name.
func Tap(name string) Name { return Name{SourceTap, SubjectSelf, "tap." + name, Count} }

// Calls that a client made one after the other on a connection.
var (
	Chains        = conn("chains", Count)
	ChainCalls    = conn("chain_calls", Count)
	ChainTime     = conn("chain_ns", Nanoseconds)
	ChainInFlight = conn("chain_in_flight_ns", Nanoseconds) // of that, with a call in flight
)

// Transactions of a connection on which keys were watched, and those of them that failed because another client had
// changed a key: from WATCH to the reply to EXEC.
var (
	Transactions           = conn("transactions", Count)
	TransactionsFailed     = conn("transactions_failed", Count)
	TransactionsFailedTime = conn("transactions_failed_ns", Nanoseconds)
)

// ChainsOfPrefix precedes the command in the names of ChainsOf.
const ChainsOfPrefix = "chain_of."

// ChainsOf is Chains, by the command of the last.
func ChainsOf(command string) Name { return conn(ChainsOfPrefix+command, Count) }

// Processes whose calls the tap sees.
var (
	Readers          = Name{SourceTap, ProcessPrefix, "readers", Count} // threads that read replies
	CollectorWatched = Name{SourceTap, ProcessPrefix, "collector.watched", Count}
)

func conn(name string, unit Unit) Name { return Name{SourceTap, ConnPrefix, name, unit} }
