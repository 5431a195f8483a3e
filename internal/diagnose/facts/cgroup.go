package facts

// Cgroup is the snapshot "cgroup": where the server's limits are set.
type Cgroup struct {
	Version int    `json:"version"`
	CPUPath string `json:"cpu_path"`
	Levels  []struct {
		Path     string `json:"path"`
		QuotaUs  int64  `json:"quota_us"`
		PeriodUs int64  `json:"period_us"`
	} `json:"levels"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Unit      string `json:"unit"`
}
