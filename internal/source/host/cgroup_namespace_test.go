package host

import (
	"path"
	"strings"
	"testing"
)

// TestCgroupNamespace: of a pod, whose cgroup namespace is its own, and which has the host's cgroups mounted.
func TestCgroupNamespace(t *testing.T) {
	const (
		pods   = "/kubepods.slice/kubepods-besteffort.slice/"
		agent  = pods + "kubepods-besteffort-pod0a.slice/cri-containerd-1f.scope"
		server = pods + "kubepods-besteffort-pod0b.slice/cri-containerd-2f.scope"
		up     = "/../../.."
		root   = "/../../../.."

		service = "/system.slice/redis.service"
	)
	beside := "/../../" + strings.TrimPrefix(server, pods)
	below := func(cgroup string) string { return "/sys/fs/cgroup" + cgroup + "/cgroup.procs" }
	for name, c := range map[string]struct {
		mounted, own, of string
		in               string // cgroup.procs of the agent's cgroup
		want             string // "": not known
	}{
		"a pod beside":           {root, "/", beside, "12\n41\n", server},
		"a process of the host":  {root, "/", root + service, "41\n", service},
		"its own pod":            {root, "/", "/", "41\n", agent},
		"in a cgroup of its own": {"/../../..", "/" + path.Base(agent), "/", "41\n", path.Dir(agent)},
		"above what is mounted":  {"/../..", "/", "/../../../x", "41\n", ""},
		"the agent is nowhere":   {root, "/", "/../../x", "12\n4\n", ""},
		"its own cgroup alone":   {"/", "/", "/../../x", "41\n", ""},
		"the mount is elsewhere": {"/../../x", "/", "/../../x", "41\n", ""},
	} {
		files := map[string]string{
			"/proc/self/mountinfo": "30 20 0:26 " + c.mounted + " /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n",
			"/proc/self/cgroup":    "0::" + c.own + "\n", "/proc/self/stat": "41 (slowpath) S 1\n",
			"/proc/77/cgroup": "0::" + c.of + "\n",
			below(agent):      c.in, below(server): "77\n", below(service): "77\n",
		}
		got, err := resolveCgroups(tree(t, files), 77)
		if err != nil || got.cpu.path != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got.cpu.path, c.want, err)
		}
	}
}
