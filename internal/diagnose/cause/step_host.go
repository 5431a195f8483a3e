package cause

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording/series"
)

// cpuList is CPUs from the first to the last as taskset(1) lists them, without one; empty where none is left.
func cpuList(first, last, without int) string {
	var ranges []string
	for _, r := range [][2]int{{first, min(last, without-1)}, {max(first, without+1), last}} {
		switch {
		case r[0] == r[1]:
			ranges = append(ranges, strconv.Itoa(r[0]))
		case r[0] < r[1]:
			ranges = append(ranges, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	return strings.Join(ranges, ",")
}

// otherCPUs are all CPUs of the server's host but one; empty where there is no other, or their number is not known.
func otherCPUs(n *facts.Node, cpu int) string {
	return cpuList(0, int(facts.LastValue(n.Series(series.MachineCPUs)))-1, cpu)
}

// mainAffinity are the CPUs that the server may use, where that follows from their number: one, or all. Else it is
// empty.
func mainAffinity(n *facts.Node) string {
	allowed, all := facts.LastValue(n.Series(series.CPUsAllowed)), facts.LastValue(n.Series(series.MachineCPUs))
	switch cpu, ok := hosts.MainCPU(n); {
	case ok && allowed == 1:
		return strconv.Itoa(cpu)
	case allowed > 0 && allowed == all:
		return cpuList(0, int(all)-1, -1)
	}
	return ""
}

// moveProcesses lets all threads of processes run on these CPUs only.
func moveProcesses(pids []int, cpus string) string {
	if len(pids) == 1 {
		return fmt.Sprintf("taskset -acp %s %d", cpus, pids[0])
	}
	var names []string
	for _, pid := range pids {
		names = append(names, strconv.Itoa(pid))
	}
	return fmt.Sprintf("for p in %s; do taskset -acp %s $p; done", strings.Join(names, " "), cpus)
}

// unitOf is the systemd unit whose cgroup this is; empty where it is none. Those of containers are made by their
// runtime.
func unitOf(cgroup string) string {
	base := path.Base(cgroup)
	for _, suffix := range []string{".service", ".slice", ".scope"} {
		if strings.HasSuffix(base, suffix) {
			return base
		}
	}
	return ""
}

// Ids of steps that take a CPU limit away by other tools than a write to the cgroup's file.
const (
	stepPodLimit       = "remove-pod-cpu-limit"
	stepContainerLimit = "raise-container-cpu-limit"
	stepUnitLimit      = "remove-unit-cpu-limit"
)

// clientQuotaStep removes the CPU quota of a caller's cgroup where it was set: for a pod, a container, a systemd unit,
// or a bare cgroup. who is the caller. Each tool has a step of its own: the lab proves that of a bare cgroup alone.
func clientQuotaStep(n *facts.Node, cgroup, who string) remedy.Step {
	quota := facts.LastValue(n.CgroupSeries(cgroup, series.CgroupQuota))
	period := facts.LastValue(n.CgroupSeries(cgroup, series.CgroupPeriod))
	s := remedy.Step{
		ID: "remove-cpu-limit", Kind: remedy.Command, Text: "Remove the CPU limit of " + format.Name(who),
		Risk: "without a limit it may take CPU time from its neighbours",
	}
	limited := quota > 0 && period > 0
	container, inDocker := containerOf(cgroup)
	switch {
	case strings.Contains(cgroup, "kubepods"):
		s.ID = stepPodLimit
		s.Text += " (keep requests.cpu)"
		s.Command = "kubectl set resources deployment/<name of the workload> -c <name of the container> --limits=cpu=0"
		s.Restart = "the pod"
	case inDocker && limited:
		s.ID = stepContainerLimit
		s.Text = fmt.Sprintf("Raise the CPU limit of %s. Where it was started with --cpu-quota: --cpu-quota=-1",
			format.Name(who))
		s.Command = fmt.Sprintf("docker update --cpus=%.0f %s", math.Ceil(2*quota/period), container)
		s.Undo = fmt.Sprintf("docker update --cpus=%.2f %s", quota/period, container)
	case unitOf(cgroup) != "" && !inDocker:
		s.ID = stepUnitLimit
		s.Command, s.Undo = unitWithoutQuota(unitOf(cgroup), quota, period)
	case cgroup != "" && limited && hosts.CgroupOf(n).Version > 0:
		s.Command, s.Undo = cgroupWithoutQuota(hosts.CgroupOf(n).Version, cgroup, quota, period)
	default:
		s.Kind = remedy.Change
		s.Text += ", or raise it: resources.limits.cpu of its container in Kubernetes, CPUQuota of its systemd unit"
		if cgroup != "" {
			s.Text += ", cpu.max or cpu.cfs_quota_us of its cgroup " + format.Name(cgroup)
		}
	}
	return s
}

// unitWithoutQuota are the commands that take the CPU quota from a systemd unit, and that give it back where it is
// known (above 0).
func unitWithoutQuota(unit string, quota, period float64) (command, undo string) {
	command = "systemctl set-property " + format.Shell(unit) + " CPUQuota="
	if quota > 0 && period > 0 {
		undo = fmt.Sprintf("%s%.0f%%", command, 100*quota/period)
	}
	return command, undo
}

// cgroupWithoutQuota does the same with a bare cgroup; version is that of its hierarchy, quota and period are in
// microseconds.
func cgroupWithoutQuota(version int, cgroup string, quota, period float64) (command, undo string) {
	file := format.Shell("/sys/fs/cgroup/cpu" + cgroup + "/cpu.cfs_quota_us")
	command, before := "echo -1 > "+file, fmt.Sprintf("%.0f", quota)
	if version == 2 {
		file = format.Shell("/sys/fs/cgroup" + cgroup + "/cpu.max")
		command, before = "echo max > "+file, fmt.Sprintf("%.0f %.0f", quota, period)
	}
	if quota > 0 && period > 0 {
		undo = "echo " + before + " > " + file
	}
	return command, undo
}

// containerOf is the id of the Docker container whose cgroup this is: /docker/ID, or docker-ID.scope.
func containerOf(cgroup string) (id string, ok bool) {
	if !strings.Contains(cgroup, "docker") {
		return "", false
	}
	id = strings.TrimSuffix(strings.TrimPrefix(path.Base(cgroup), "docker-"), ".scope")
	return format.Shell(fmt.Sprintf("%.12s", id)), id != ""
}
