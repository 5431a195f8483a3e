package host

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

func TestModuleNames(t *testing.T) {
	for module, want := range map[string]string{
		"github.com/redis/go-redis/v9": "go-redis", "github.com/go-redis/redis/v8": "go-redis",
		"github.com/go-redis/redis": "go-redis", "gopkg.in/redis.v5": "go-redis",
		"github.com/gomodule/redigo": "redigo", "github.com/redis/rueidis": "rueidis",
		"github.com/redis/go-redis/extra/redisotel/v9": "", "github.com/redis/go-redis/vnext": "",
	} {
		if got := goModules[withoutMajor(module)]; got != want {
			t.Errorf("%s: %q, want %q", module, got, want)
		}
	}
}

func TestJarLibrary(t *testing.T) {
	for file, want := range map[string]recording.Library{
		"jedis-7.5.3.jar":                {Name: "jedis", Version: "7.5.3", How: recording.LibraryOpen},
		"lettuce-core-6.8.1.RELEASE.jar": {Name: "lettuce", Version: "6.8.1", How: recording.LibraryOpen},
		"redisson-3.27.0.jar":            {Name: "redisson", Version: "3.27.0", How: recording.LibraryOpen},
		"redisson-spring-data-33.jar":    {},
		"jedis.jar":                      {},
		"jedis-7.5.3.jar.lock":           {},
		"":                               {},
	} {
		if got, ok := jarLibrary(file); got != want || ok != (want.Name != "") {
			t.Errorf("%q: %+v, %v", file, got, ok)
		}
	}
}

// TestLibrariesOf: processes as /proc shows them, below a directory.
func TestLibrariesOf(t *testing.T) {
	root := t.TempDir()
	file := func(name, body string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		t.Helper()
		file(name+".dir", "")
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("proc/1/exe", "/usr/lib/jvm/bin/java")
	link("proc/1/fd/4", "/srv/lib/lettuce-core-6.8.1.RELEASE.jar")
	link("proc/1/fd/5", "/srv/lib/netty-common-4.1.jar")
	link("proc/2/exe", "/usr/bin/node")
	link("proc/2/cwd", "/")
	file("proc/2/cmdline", "node\x00--trace-gc\x00/srv/app/dist/main.js\x00")
	file("proc/2/root/srv/app/node_modules/ioredis/package.json", `{"name":"ioredis","version":"5.4.1"}`)
	file("proc/2/root/srv/app/node_modules/redis/package.json", `{"version":"4.6.8"}`)
	file("proc/2/root/srv/app/node_modules/@redis/client/package.json", `{"version":"1.5.9"}`)
	link("proc/3/exe", "/usr/bin/python3.11")
	file("proc/3/cmdline", "/srv/venv/bin/python\x00-m\x00app\x00")
	file("proc/3/root/srv/venv/lib/python3.11/site-packages/redis-7.1.0.dist-info/METADATA", "")
	file("proc/3/root/usr/lib/python3/dist-packages/redis-4.3.4.egg-info/PKG-INFO", "")
	link("proc/4/exe", "/usr/bin/redis-cli")
	file("proc/5/exe", "\x7fELF and no program")
	for pid, want := range map[int][]recording.Library{
		1: {{Name: "lettuce", Version: "6.8.1", How: recording.LibraryOpen}},
		2: {{Name: "ioredis", Version: "5.4.1", How: recording.LibraryInstalled}, {
			Name: "node-redis", Version: "4.6.8",
			How: recording.LibraryInstalled,
		}},
		3: {{Name: "redis-py", Version: "7.1.0", How: recording.LibraryInstalled}},
		4: nil, 5: nil, 6: nil,
	} {
		if got := librariesOf(Root{Root: hostfs.Root{Dir: root}}, pid); !reflect.DeepEqual(got, want) {
			t.Errorf("process %d: %+v, want %+v", pid, got, want)
		}
	}
}

// TestHostilePackages: what a process puts where a package is described is not waited for, and not read without end.
func TestHostilePackages(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path string) error
	}{
		{"a pipe that nobody writes", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"a device without end", func(path string) error { return os.Symlink("/dev/zero", path) }},
		{"a file without end", func(path string) error {
			if err := os.WriteFile(path, []byte(`{"version":"`), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}},
		{"a socket", func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := os.MkdirTemp("", "") // the name of a socket has 107 bytes at most
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			dir := filepath.Join(root, "proc/2")
			pkg := filepath.Join(dir, "root/app/node_modules/ioredis")
			if err := os.MkdirAll(pkg, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, to := range map[string]string{"exe": "/usr/bin/node", "cwd": "/app"} {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.make(filepath.Join(pkg, "package.json")); err != nil {
				t.Fatal(err)
			}
			found := make(chan []recording.Library, 1)
			go func() { found <- librariesOf(Root{Root: hostfs.Root{Dir: root}}, 2) }()
			select {
			case got := <-found:
				if len(got) > 0 {
					t.Errorf("found %+v", got)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits")
			}
		})
	}
}
