package hostfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramName(t *testing.T) {
	for cmdline, want := range map[string]string{
		"":                  "",
		"redis-cli -a pw":   "redis-cli",
		"/usr/bin/shop --p": "shop",
		// titles in place of arguments
		"redis-server *:6379":     "redis-server",
		"gunicorn: worker [shop]": "gunicorn",
		"-bash":                   "bash",
		// interpreters
		"python3 /srv/flood.py --password pw":               "flood.py",
		"/usr/bin/python3.11 -u -W ignore -X dev worker.py": "worker.py",
		"python3 -m celery -A shop":                         "celery",
		"python3 -c import_secret":                          "python3",
		"python3":                                           "python3",
		"python3 /usr/local/bin/gunicorn shop:app":          "gunicorn",
		"node --require ./secret.js /srv/app/server.js pw":  "server.js",
		"node --max-old-space-size=99 index":                "index",
		"node --token secret":                               "node",
		"node --token secret app.mjs":                       "node",
		"node -e secret()":                                  "node",
		"java -Dpw=secret -cp /a:/b com.shop.Main --pw x":   "com.shop.Main",
		"java -Xmx1g -jar /srv/shop.jar":                    "shop.jar",
		"java -m shop/com.shop.Main":                        "shop",
		"ruby -r bundler /srv/job.rb":                       "job.rb",
		"php -d a=b -f /srv/job.php":                        "job.php",
		"bash -c redis-cli_-a_pw":                           "bash",
		"bash /srv/loop.sh":                                 "loop.sh",
		"python3 a\x1bb[1].py":                              "a?b?1?.py",
		"/" + strings.Repeat("x", 99):                       strings.Repeat("x", maxProgramName),
	} {
		first, _, _ := strings.Cut(cmdline, " ") // a program's file, of which the kernel takes 15 bytes
		comm := strings.Trim(filepath.Base(strings.Trim(first, "-")), ":")
		comm = comm[:min(len(comm), 15)]
		if got := ProgramName(comm, []byte(strings.ReplaceAll(cmdline, " ", "\x00")+"\x00")); got != want {
			if title := ProgramName(comm, []byte(cmdline+"\x00")); title != want {
				t.Errorf("%q: got %q and as a title %q, want %q", cmdline, got, title, want)
			}
		}
	}
}

// TestTitleIsNoName: what a process wrote in place of its arguments may be anything; an interpreter's script is none.
func TestTitleIsNoName(t *testing.T) {
	for cmdline, want := range map[string]string{
		"hidden-token 7": "worker", "worker: hidden": "worker", "worker-main hidden": "worker-main",
		"python3 /usr/bin/worker": "worker",
	} {
		if got := ProgramName("worker", []byte(strings.ReplaceAll(cmdline, " ", "\x00"))); got != want {
			t.Errorf("%q: got %q, want %q", cmdline, got, want)
		}
	}
}

func FuzzProgramName(f *testing.F) {
	f.Add([]byte("python3\x00-m\x00"))
	f.Add([]byte("java\x00-jar\x00/srv/a.jar\x00--pw\x00x\x00"))
	f.Fuzz(func(t *testing.T, cmdline []byte) {
		name := ProgramName("worker", cmdline)
		if len(name) > maxProgramName || strings.ContainsAny(name, " []\x00\n\x1b") {
			t.Errorf("%q of %q", name, cmdline)
		}
	})
}

func TestProgramOf(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/7/status":  "Name:\tpython3\nUid:\t0\t1000\t0\t0\n",
		"proc/7/cmdline": "python3\x00/srv/flood.py\x00--password\x00secret\x00",
		"proc/7/cgroup":  "2:cpu:/\n1:name=systemd:/system.slice/flood.service\n0::/\n",
		"etc/passwd":     "root:x:0:0::/:\napp:x:1000:1000::/:\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := Program{Comm: "python3", Name: "flood.py", User: "app", Unit: "flood.service"}
	if got, ok := ProgramOf(Root{Dir: dir}, 7); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	if _, ok := ProgramOf(Root{Dir: dir}, 8); ok {
		t.Error("a process that is not there has a program")
	}
}

func TestOwnerOfCgroup(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct{ path, pod, container, unit string }{
		{"/", "", "", ""},
		{"/system.slice/redis-server.service", "", "", "redis-server.service"},
		{"/docker/" + id, "", id, ""},
		{"/system.slice/docker-" + id + ".scope", "", id, ""},
		{
			"/kubepods/burstable/pod01234567-89ab-cdef-0123-456789abcdef/" + id, "01234567-89ab-cdef-0123-456789abcdef",
			id, "",
		},
		{
			"/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-" + id + ".scope",
			"01234567-89ab-cdef-0123-456789abcdef", id, "",
		},
	} {
		pod, container, unit := OwnerOf(c.path)
		if pod != c.pod || container != c.container || unit != c.unit {
			t.Errorf("%s: got %q %q %q", c.path, pod, container, unit)
		}
	}
}
