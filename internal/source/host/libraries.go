package host

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// Bounds of the search for libraries, which runs once for each client process.
const (
	maxOpenFiles = 4096
	maxParents   = 4       // directories above that of a script
	maxPackage   = 1 << 20 // bytes of a package.json
)

// goModules are client libraries by the path of their module, without the major version behind it.
var goModules = map[string]string{
	"github.com/redis/go-redis": "go-redis", "github.com/go-redis/redis": "go-redis", "gopkg.in/redis": "go-redis",
	"github.com/gomodule/redigo": "redigo", "github.com/garyburd/redigo": "redigo",
	"github.com/redis/rueidis": "rueidis", "github.com/valkey-io/valkey-go": "valkey-go",
	"github.com/valkey-io/valkey-glide/go": "valkey-glide",
}

// jars are client libraries by the beginning of their file's name.
var jars = map[string]string{
	"jedis": "jedis", "lettuce-core": "lettuce", "redisson": "redisson",
	"valkey-glide": "valkey-glide",
}

// nodePackages are client libraries by their directory below node_modules, and pythonPackages by that of their
// metadata.
var (
	nodePackages = [][2]string{
		{"ioredis", "ioredis"},
		{"iovalkey", "iovalkey"},
		{"redis", "node-redis"},
		{"@redis/client", "node-redis"},
	}
	pythonPackages = map[string]string{
		"redis": "redis-py", "valkey": "valkey-py", "aioredis": "aioredis",
		"valkey_glide": "valkey-glide",
	}
)

// librariesOf finds the client libraries of a process: the modules that a Go program was built of, the jars that a JVM
// has open, and the packages that are installed where Node.js and Python search for them. What cannot be read counts as
// missing.
func librariesOf(fs FS, pid int) []recording.Library {
	dir := fmt.Sprintf("/proc/%d", pid)
	if out, has := packagesOf(fs, dir); has {
		return out
	}
	info, err := builtWith(fs, dir)
	if err != nil {
		return nil // not a Go program
	}
	return modulesOf(info)
}

// packagesOf finds those of a process whose runtime has its libraries in files of their own; false where it has none.
func packagesOf(fs FS, dir string) (out []recording.Library, has bool) {
	exe, _ := fs.Readlink(dir + "/exe")
	switch base := path.Base(exe); {
	case base == "java":
		return jarsOf(fs, dir), true
	case base == "node" || base == "nodejs" || base == "bun":
		return nodePackagesOf(fs, dir), true
	case strings.HasPrefix(base, "python"):
		return pythonPackagesOf(fs, dir, exe), true
	}
	return nil, false
}

func modulesOf(info *buildinfo.BuildInfo) (out []recording.Library) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if name := goModules[withoutMajor(m.Path)]; name != "" {
			out = append(out, recording.Library{Name: name, Version: strings.TrimSuffix(strings.TrimPrefix(m.Version,
				"v"), "+incompatible"), How: recording.LibraryBuiltIn})
		}
	}
	return out
}

// builtWith is what a Go program says that it was built with. The file may be anybody's.
func builtWith(fs FS, dir string) (info *buildinfo.BuildInfo, err error) {
	f, err := fs.OpenRegular(dir+"/exe", true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer func() { // debug/elf is not hardened against malicious files
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s/exe: %v", dir, p)
		}
	}()
	return buildinfo.Read(f)
}

// withoutMajor cuts "/v9" or ".v5" off the path of a module.
func withoutMajor(module string) string {
	for _, sep := range []string{"/v", ".v"} {
		if i := strings.LastIndex(module, sep); i > 0 && len(module) > i+2 && strings.Trim(module[i+2:],
			"0123456789") == "" {
			return module[:i]
		}
	}
	return module
}

func jarsOf(fs FS, dir string) (out []recording.Library) {
	fds, err := fs.ReadDir(dir + "/fd")
	if err != nil {
		return nil
	}
	seen := map[recording.Library]bool{}
	for _, fd := range fds[:min(len(fds), maxOpenFiles)] {
		file, err := fs.Readlink(dir + "/fd/" + fd)
		if l, ok := jarLibrary(path.Base(file)); err == nil && ok && !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out
}

// jarLibrary reads "lettuce-core-6.8.1.RELEASE.jar".
func jarLibrary(file string) (recording.Library, bool) {
	stem, ok := strings.CutSuffix(file, ".jar")
	for prefix, name := range jars {
		version, is := strings.CutPrefix(stem, prefix+"-")
		if ok && is && version != "" && version[0] >= '0' && version[0] <= '9' {
			return recording.Library{
				Name: name, Version: strings.TrimSuffix(version, ".RELEASE"),
				How: recording.LibraryOpen,
			}, true
		}
	}
	return recording.Library{}, false
}

func nodePackagesOf(fs FS, dir string) (out []recording.Library) {
	seen := map[string]bool{}
	for _, d := range scriptDirs(fs, dir) {
		for _, known := range nodePackages {
			pkg, name := known[0], known[1]
			b, err := hostfs.ReadRegular(fs, dir+"/root"+path.Join(d, "node_modules", pkg, "package.json"), maxPackage)
			var about struct {
				Version string `json:"version"`
			}
			if err != nil || seen[name] || json.Unmarshal(b, &about) != nil {
				continue
			}
			seen[name] = true
			out = append(out, recording.Library{Name: name, Version: about.Version, How: recording.LibraryInstalled})
		}
	}
	return out
}

// scriptDirs are the directories of a process's script and its working directory, with those above.
func scriptDirs(fs FS, dir string) (out []string) {
	cwd, _ := fs.Readlink(dir + "/cwd")
	starts := []string{cwd}
	if b, err := fs.ReadFile(dir + "/cmdline"); err == nil {
		for _, arg := range strings.Split(string(b), "\x00")[1:] {
			if !strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "./") {
				if !path.IsAbs(arg) {
					arg = path.Join(cwd, arg)
				}
				starts = append(starts, path.Dir(arg))
				break
			}
		}
	}
	for _, d := range starts {
		for range maxParents {
			if d == "" || d == "/" || d == "." {
				break
			}
			out = append(out, d)
			d = path.Dir(d)
		}
	}
	return out
}

func pythonPackagesOf(fs FS, dir, exe string) (out []recording.Library) {
	prefixes := []string{path.Dir(path.Dir(exe))}
	if b, err := fs.ReadFile(dir + "/cmdline"); err == nil {
		if args0, _, _ := strings.Cut(string(b), "\x00"); path.IsAbs(args0) { // that of a virtual environment
			prefixes = append([]string{path.Dir(path.Dir(args0))}, prefixes...)
		}
	}
	seen := map[string]bool{}
	for _, prefix := range prefixes {
		for _, site := range siteDirs(fs, dir+"/root"+prefix) {
			names, err := fs.ReadDir(site)
			if err != nil {
				continue
			}
			for _, n := range names {
				pkg, version, ok := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(n, ".dist-info"), ".egg-info"),
					"-")
				version, _, _ = strings.Cut(version, "-py") // redis-4.3.4-py3.11.egg-info
				if name := pythonPackages[pkg]; ok && name != "" && !seen[name] && strings.HasSuffix(n, "-info") {
					seen[name] = true
					out = append(out, recording.Library{Name: name, Version: version, How: recording.LibraryInstalled})
				}
			}
		}
	}
	return out
}

// siteDirs are where packages are below a prefix: /usr/lib/python3/dist-packages, PREFIX/lib/python3.11/site-packages.
func siteDirs(fs FS, prefix string) (out []string) {
	for _, lib := range []string{"/lib", "/local/lib"} {
		names, err := fs.ReadDir(prefix + lib)
		if err != nil {
			continue
		}
		for _, n := range names {
			if strings.HasPrefix(n, "python") {
				out = append(out, prefix+lib+"/"+n+"/site-packages", prefix+lib+"/"+n+"/dist-packages")
			}
		}
	}
	return out
}
