package host

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// Bounds of the search for the own cgroup. A node of Kubernetes has at most some hundred pods, with few cgroups each.
const (
	maxCgroupsSearched = 20000
	maxCgroupDepth     = 16
)

// namespaceRoots are the roots that were looked for; empty: it was not found. That of a process does not change.
var namespaceRoots sync.Map // of namespaceKey: string

type namespaceKey struct{ point, root, own string }

// namespaceRoot is the root of slowpath's cgroup namespace, as a path below a mount of a cgroup above it: what
// /proc/PID/cgroup and mountinfo have are paths relative to that root, with as many ".." as it takes to go up. A pod of
// Kubernetes has such a namespace; the mount is the host's /sys/fs/cgroup. Which cgroup the root is the kernel says
// nowhere: it is the one, at that depth, in which slowpath is. own is its place in its namespace.
func namespaceRoot(fs FS, m cgroupMount, own string) (string, bool) {
	depth := strings.Count(m.root, "/..")
	if m.root != strings.Repeat("/..", depth) || strings.HasPrefix(own, "/..") || own == "" {
		return "", false
	}
	key := namespaceKey{fs.Path(m.point), m.root, own}
	if found, ok := namespaceRoots.Load(key); ok {
		return found.(string), found != ""
	}
	stat, err := fs.ReadFile("/proc/self/stat")
	if err != nil {
		return "", false
	}
	self, _, _ := strings.Cut(string(stat), " ")
	within := 0
	if own != "/" {
		within = strings.Count(own, "/")
	}
	s := cgroupSearch{fs: fs, point: m.point, pid: self, left: maxCgroupsSearched}
	at, ok := s.find("/", min(depth+within, maxCgroupDepth))
	if !ok || !strings.HasSuffix(at, strings.TrimSuffix(own, "/")) {
		namespaceRoots.Store(key, "") // a search looks at many directories
		return "", false
	}
	root := path.Clean("/" + strings.TrimSuffix(at, strings.TrimSuffix(own, "/")))
	namespaceRoots.Store(key, root)
	return root, true
}

// cgroupSearch finds the cgroup of a process.
type cgroupSearch struct {
	fs    FS
	point string
	pid   string
	left  int // how many cgroups may still be looked at
}

// find looks in the cgroups that are depth levels below one.
func (s *cgroupSearch) find(at string, depth int) (string, bool) {
	if s.left--; s.left < 0 {
		return "", false
	}
	dir := path.Join(s.point, at)
	if depth == 0 {
		b, err := s.fs.ReadFile(dir + "/cgroup.procs")
		return at, err == nil && slices.Contains(strings.Fields(string(b)), s.pid)
	}
	names, _ := s.fs.ReadDir(dir) // one that has just been removed has none
	for _, name := range names {
		if info, err := s.fs.Stat(path.Join(dir, name)); err != nil || !info.IsDir() {
			continue
		}
		if found, ok := s.find(path.Join(at, name), depth-1); ok {
			return found, true
		}
	}
	return "", false
}

// ownCgroups are the paths of slowpath itself, by controller.
func ownCgroups(fs FS) map[string]string {
	b, err := fs.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return cgroupPaths(b)
}

// hostPath is a path of /proc/PID/cgroup as it is below a mount of a cgroup above the root of slowpath's namespace.
func hostPath(fs FS, m cgroupMount, controller, p string) (string, bool) {
	root, ok := namespaceRoot(fs, m, ownCgroups(fs)[controller])
	if !ok {
		return "", false
	}
	if up := strings.Count(p, "/.."); up > strings.Count(m.root, "/..") {
		return "", false
	}
	return path.Join(root, p), true
}
