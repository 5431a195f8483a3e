package facts

// Cgroup is the snapshot "cgroup" of a server: where its limits are set.
type Cgroup struct {
	// Version is the version of cgroups: 1 or 2.
	Version int `json:"version"`
	// CPUPath is the path of the CPU cgroup.
	CPUPath string `json:"cpu_path"`
	// Levels are the cgroups from the server's up to the root, with their CPU quota and its period in microseconds.
	Levels []struct {
		Path     string `json:"path"`
		QuotaUs  int64  `json:"quota_us"`
		PeriodUs int64  `json:"period_us"`
	} `json:"levels"`
	// Pod is the Kubernetes pod, Container the container, and Unit the systemd unit; empty where there is none.
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Unit      string `json:"unit"`
}
