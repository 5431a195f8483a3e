package fleet

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is what kind of thing an entry of the registry stands for; it decides how the thing is removed.
type Kind string

// The kinds, in the order of their removal: a process may use all others, a mount its loop device, and swap or a loop
// device a file in a directory.
const (
	KindProcess Kind = "process" // Process, or found by its working directory Path when the pid was not yet known
	KindCgroup  Kind = "cgroup"  // Paths: directories below /sys/fs/cgroup, one per controller with version 1
	KindNft     Kind = "nft"     // Name: "FAMILY TABLE"
	KindNetNS   Kind = "netns"   // Name: as in `ip netns`
	KindMount   Kind = "mount"   // Path: mount point
	KindSwap    Kind = "swap"    // Path: swap file, in a directory whose name starts with "slowpath-"
	KindLoop    Kind = "loop"    // Path: backing file
	KindDir     Kind = "dir"     // Path: directory whose name starts with "slowpath-"
)

var removalOrder = []Kind{KindProcess, KindCgroup, KindNft, KindNetNS, KindMount, KindSwap, KindLoop, KindDir}

// Entry is one thing that the lab made. It is written before the thing is made, so its thing may not exist (yet).
type Entry struct {
	ID         string    `json:"id"`
	Kind       Kind      `json:"kind"`
	Group      string    `json:"group,omitempty"` // things made together
	Persistent bool      `json:"persistent"`      // made by `lab up`: outlives its owner
	Fleet      string    `json:"fleet,omitempty"` // name of `lab up`, if persistent; empty: DefaultName
	User       string    `json:"user,omitempty"`  // number of the user who made it; empty: by an older version
	Owner      Process   `json:"owner"`           // the lab that made it
	BootID     string    `json:"boot_id"`
	Created    time.Time `json:"created"`

	Process Process  `json:"process,omitzero"`
	Path    string   `json:"path,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Name    string   `json:"name,omitempty"`
	Info    *Info    `json:"info,omitempty"` // of a server's process
	Like    *likeIt  `json:"like,omitempty"` // of a persistent node of a cluster
}

// fleet is the name of the `lab up` that made the entry.
func (e Entry) fleet() string { return cmp.Or(e.Fleet, DefaultName) }

// check refuses an entry whose removal could hurt anything but the lab's own things.
func (e Entry) check(cgroupRoot string) error {
	clean := func(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" }
	ok := false
	switch e.Kind {
	case KindProcess:
		ok = e.Process.PID > 1 || clean(e.Path)
	case KindCgroup:
		ok = len(e.Paths) > 0
		for _, p := range e.Paths {
			ok = ok && clean(p) && strings.HasPrefix(p, cgroupRoot+"/") && p != cgroupRoot
		}
	case KindNft:
		family, table, two := strings.Cut(e.Name, " ")
		ok = two && isWord(family) && isWord(table)
	case KindNetNS:
		ok = isWord(e.Name)
	case KindMount, KindLoop:
		ok = clean(e.Path)
	case KindSwap:
		ok = clean(e.Path) && strings.HasPrefix(filepath.Base(filepath.Dir(e.Path)), dirPrefix)
	case KindDir:
		ok = clean(e.Path) && strings.HasPrefix(filepath.Base(e.Path), dirPrefix)
	}
	if !ok {
		return fmt.Errorf("not a thing of the lab: %s %q %q %q", e.Kind, e.Path, e.Paths, e.Name)
	}
	return nil
}

// isWord reports whether a name is safe as an argument of a command: not an option, and without special characters.
func isWord(s string) bool {
	return s != "" && s[0] != '-' && s[0] != '.' && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}) < 0
}

// inRemovalOrder sorts by kind, and within a kind the newest first, since it may be inside an older one.
func inRemovalOrder(entries []Entry) []Entry {
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b Entry) int {
		if c := slices.Index(removalOrder, a.Kind) - slices.Index(removalOrder, b.Kind); c != 0 {
			return c
		}
		return b.Created.Compare(a.Created)
	})
	return out
}
