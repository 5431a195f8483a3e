package remedy

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
)

// Continue lets the stopped process of a server go on; ok is false where it is not known.
func Continue(n *facts.Node) (s Step, ok bool) {
	pid, cgroup := nodes.Stopped(n)
	s = Step{
		ID: "continue-process", Kind: Command, Text: "Let the stopped process go on",
		Where: "the host of " + format.Name(n.Address),
	}
	s.Command, s.Undo = GoOn(n, cgroup, pid)
	return s, s.Command != ""
}

// GoOn are the commands that let a stopped process go on, and that stop it again: by the freezer where its cgroup is
// frozen, else by a signal. They are empty where neither the cgroup nor the process id is known.
func GoOn(n *facts.Node, cgroup string, pid int) (command, undo string) {
	switch {
	case cgroup != "" && hosts.CgroupOf(n).Version == 1:
		file := format.Shell("/sys/fs/cgroup/freezer" + cgroup + "/freezer.state")
		return "echo THAWED > " + file, "echo FROZEN > " + file
	case cgroup != "":
		file := format.Shell("/sys/fs/cgroup" + cgroup + "/cgroup.freeze")
		return "echo 0 > " + file, "echo 1 > " + file
	case pid > 0:
		return fmt.Sprintf("kill -CONT %d", pid), fmt.Sprintf("kill -STOP %d", pid)
	}
	return "", ""
}

// WhatRunsIt says what to look at of the systemd unit, the container or the pod of a server, as far as they are known.
func WhatRunsIt(n *facts.Node) string {
	c := hosts.CgroupOf(n)
	switch {
	case c.Pod != "":
		return ", \"Last State\" of " + format.Name(c.PodText())
	case c.Container != "":
		return fmt.Sprintf(", docker inspect of container %.12s", c.Container)
	case strings.HasSuffix(c.Unit, ".service"):
		return " of " + format.Name(c.Unit)
	}
	return ""
}

// ServePartly lets the masters that are well go on while others are gone.
func ServePartly(n *facts.Node) Step {
	return ConfigSetAll(n, "serve-partly", "cluster-require-full-coverage", "no",
		"Let the other masters go on serving their own slots meanwhile")
}

// WriteToMaster names the master of a replica that is asked to write.
func WriteToMaster(n *facts.Node) Step {
	s := Step{
		ID: "write-to-master", Kind: Setting, Library: "application", Option: "address of the server",
		From: n.Address, To: "<the address of the master>", Restart: "the application",
		Where: "the configuration of the callers, or of the name or load balancer that they use",
	}
	if master := n.MasterAddress(); master != "" {
		s.To = master
	}
	return s
}

// ServeStaleData lets a replica without its master answer reads.
func ServeStaleData(n *facts.Node) Step {
	s := ConfigSet(n, "serve-stale-data", "replica-serve-stale-data", "yes",
		"Let the replica answer reads while it has no master")
	s.Risk = "callers read old data until the link is up again; " + s.Risk
	return s
}

// MendMasterLink is for a replica that has lost its master.
var MendMasterLink = Step{
	ID: "mend-master-link", Kind: Change,
	Text: "Mend the link to the master: master_link_status in INFO replication, the logs of both. Where it breaks " +
		"again and again, raise client-output-buffer-limit replica and repl-backlog-size of the master",
}

// ReadinessProbe keeps callers away from a node that cannot serve them yet.
var ReadinessProbe = Step{
	ID: "readiness-probe", Kind: Change,
	Text: "Send callers to a node only when it has its data: a readiness probe that checks INFO for loading:0 and " +
		"master_link_status:up, not PING alone",
}
