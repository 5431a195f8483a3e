package series

import (
	"strconv"
	"strings"
)

// Fields of INFO and CLUSTER INFO, under the server's own names, by section.
var (
	UptimeInSeconds = info("uptime_in_seconds", Seconds)
	Hz              = info("hz", Count) // per second
	ProcessID       = info("process_id", Count)
	IOThreadsActive = info("io_threads_active", Count)

	ConnectedClients            = info("connected_clients", Count)
	BlockedClients              = info("blocked_clients", Count)
	MaxClients                  = info("maxclients", Count)
	ClientRecentMaxInputBuffer  = info("client_recent_max_input_buffer", Bytes)
	ClientRecentMaxOutputBuffer = info("client_recent_max_output_buffer", Bytes)
	ClientsOverOutputLimit      = info("client_output_buffer_limit_disconnections", Count) // from Redis 7.4

	UsedMemory        = info("used_memory", Bytes)
	UsedMemoryRSS     = info("used_memory_rss", Bytes)
	TotalSystemMemory = info("total_system_memory", Bytes)
	MaxMemory         = info("maxmemory", Bytes)

	Loading              = info("loading", Count)
	CurrentCowSize       = info("current_cow_size", Bytes)
	RDBBgsaveInProgress  = info("rdb_bgsave_in_progress", Count)
	RDBLastCowSize       = info("rdb_last_cow_size", Bytes)
	AOFEnabled           = info("aof_enabled", Count)
	AOFRewriteInProgress = info("aof_rewrite_in_progress", Count)
	AOFCurrentSize       = info("aof_current_size", Bytes)
	AOFPendingBioFsync   = info("aof_pending_bio_fsync", Count)
	AOFDelayedFsync      = info("aof_delayed_fsync", Count)
	LatestFork           = info("latest_fork_usec", Microseconds)
	ActiveDefragRunning  = info("active_defrag_running", Count)

	TotalConnectionsReceived   = info("total_connections_received", Count)
	RejectedConnections        = info("rejected_connections", Count)
	TotalCommandsProcessed     = info("total_commands_processed", Count)
	InstantaneousOps           = info("instantaneous_ops_per_sec", Count)
	SyncFull                   = info("sync_full", Count)
	TotalErrorReplies          = info("total_error_replies", Count)
	TotalReadsProcessed        = info("total_reads_processed", Count)
	TotalWritesProcessed       = info("total_writes_processed", Count)
	TrackingClients            = info("tracking_clients", Count)
	TotalNetInputBytes         = info("total_net_input_bytes", Bytes)
	TotalNetOutputBytes        = info("total_net_output_bytes", Bytes)
	ExpiredKeys                = info("expired_keys", Count)
	ExpiredSubkeys             = info("expired_subkeys", Count) // fields of hashes (Redis 7.4)
	ExpiredFields              = info("expired_fields", Count)  // the same (Valkey 9)
	ExpiredStalePerc           = info("expired_stale_perc", Percent)
	ExpiredTimeCapReachedCount = info("expired_time_cap_reached_count", Count)
	ExpireCycleCPU             = info("expire_cycle_cpu_milliseconds", Milliseconds)
	EvictedKeys                = info("evicted_keys", Count)
	TotalEvictionExceededTime  = info("total_eviction_exceeded_time", Milliseconds)
	TotalActiveDefragTime      = info("total_active_defrag_time", Milliseconds)
	EventloopDurationSum       = info("eventloop_duration_sum", Microseconds) // outside of epoll_wait

	ConnectedSlaves            = info("connected_slaves", Count)
	MinSlavesGoodSlaves        = info("min_slaves_good_slaves", Count)
	MasterPort                 = info("master_port", Count)
	MasterReplOffset           = info("master_repl_offset", Bytes)
	MasterLinkDownSinceSeconds = info("master_link_down_since_seconds", Seconds)

	UsedCPUUser           = info("used_cpu_user", Seconds)
	UsedCPUSys            = info("used_cpu_sys", Seconds)
	UsedCPUUserMainThread = info("used_cpu_user_main_thread", Seconds)
	UsedCPUSysMainThread  = info("used_cpu_sys_main_thread", Seconds)

	ClusterEnabled       = info("cluster_enabled", Count)
	ClusterCurrentEpoch  = info("cluster_current_epoch", Count)
	ClusterKnownNodes    = info("cluster_known_nodes", Count)
	ClusterSize          = info("cluster_size", Count)
	ClusterSlotsAssigned = info("cluster_slots_assigned", Count)
	ClusterSlotsPfail    = info("cluster_slots_pfail", Count)
	ClusterSlotsFail     = info("cluster_slots_fail", Count)
)

// Expired are the counters of what expires: keys, and fields of hashes. A server has one of the last two at most.
func Expired() []Name { return []Name{ExpiredKeys, ExpiredSubkeys, ExpiredFields} }

// What precedes the command and the code of an error in names of commandstats and errorstats.
const (
	CommandPrefix = "cmdstat_"
	ErrorPrefix   = "errorstat_"
)

// CommandCalls is how often commandstats has a command, which is named as there: "cluster|nodes".
func CommandCalls(command string) Name { return info(CommandPrefix+command+".calls", Count) }

// CommandUsec is the time of all of them.
func CommandUsec(command string) Name { return info(CommandPrefix+command+".usec", Microseconds) }

// CommandRejected is how many were refused before they were executed.
func CommandRejected(command string) Name {
	return info(CommandPrefix+command+".rejected_calls", Count)
}

// CommandFailed is how many failed while they were executed.
func CommandFailed(command string) Name { return info(CommandPrefix+command+".failed_calls", Count) }

// ReplicaLag is how long ago a master had the last acknowledgement of its k-th replica (slave0, slave1, …).
func ReplicaLag(k int) Name { return info("slave"+strconv.Itoa(k)+".lag", Seconds) }

// ReplicaOffset is up to where that replica has acknowledged what the master wrote.
func ReplicaOffset(k int) Name { return info("slave"+strconv.Itoa(k)+".offset", Bytes) }

// ReplicaPort is the port of that replica.
func ReplicaPort(k int) Name { return info("slave"+strconv.Itoa(k)+".port", Count) }

// InCommandstats is how commandstats names a command: "cluster|nodes" for "CLUSTER NODES".
func InCommandstats(command string) string {
	return strings.ToLower(strings.ReplaceAll(command, " ", "|"))
}

// ErrorCount is how many replies errorstats has with a code, the first word of the error.
func ErrorCount(code string) Name { return info(ErrorPrefix+code+".count", Count) }

// The server source about itself, since its start.
var (
	OwnCommandsTime = info("self.commands_usec", Microseconds) // of the server, by commandstats where it says so
	OwnPolls        = info("self.polls", Count)
	OwnSlowlogLost  = info("self.slowlog_lost", Count) // SLOWLOG entries that were overwritten before they were read
)

func info(field string, unit Unit) Name { return Name{SourceServer, "", field, unit} }
