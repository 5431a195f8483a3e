package hosts

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Cgroup is the snapshot "cgroup" of a server: where its limits are set.
type Cgroup struct {
	// Version is the version of cgroups: 1 or 2.
	Version int `json:"version"`
	// CPUPath is the server's CPU cgroup.
	CPUPath string `json:"cpu_path"`
	// Levels are the cgroups with a CPU quota, from the server's up to the root.
	Levels []CgroupLevel `json:"levels"`
	// Pod is the Kubernetes pod; empty where there is none.
	Pod string `json:"pod"`
	// Container is the id of the container; empty where there is none.
	Container string `json:"container"`
	// PodNamespace, PodName, ContainerName and Deployment are those of the pod; empty where they are not known.
	PodNamespace  string `json:"pod_namespace"`
	PodName       string `json:"pod_name"`
	ContainerName string `json:"container_name"`
	Deployment    string `json:"deployment"`
	// Unit is the systemd unit; empty where there is none.
	Unit string `json:"unit"`
	// Kernel is the release of the host's kernel, as uname -r prints it; empty in older recordings.
	Kernel string `json:"kernel"`
}

// CgroupLevel is a cgroup with its CPU quota.
type CgroupLevel struct {
	// Path is the path of the cgroup.
	Path string `json:"path"`
	// QuotaUs is the CPU time per period, in microseconds; 0 or less for no quota.
	QuotaUs int64 `json:"quota_us"`
	// PeriodUs is the period of the quota, in microseconds.
	PeriodUs int64 `json:"period_us"`
}

// CgroupOf is where the server's limits are set.
func CgroupOf(n *facts.Node) Cgroup {
	return facts.Once(n, "cgroup", func(n *facts.Node) (c Cgroup) {
		s, _ := n.Rec.SnapshotOf(recording.SourceHost, n.Address, "cgroup")
		c, _ = recording.BodyOf[Cgroup](s)
		return c
	})
}

// PodText names the pod of the server; empty where there is none.
func (c Cgroup) PodText() string { return recording.PodText(c.Pod, c.PodNamespace, c.PodName, "") }

// Under reports whether the server runs in a cgroup, or below it.
func Under(n *facts.Node, path string) bool {
	return strings.HasPrefix(CgroupOf(n).CPUPath+"/", strings.TrimSuffix(path, "/")+"/")
}
