package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestListeners(t *testing.T) {
	files := server("0::/\n")
	files["/proc/77/comm"] = "redis-server\n"
	files["/proc/77/net/tcp6"] = "  sl\n   0: 00000000000000000000000001000000:18EB " +
		"00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1 0\n"
	files["/proc/78/comm"] = "redis-server\n" // its BGSAVE
	files["/proc/78/status"] = "Name:\tredis-server\nPPid:\t77\n"
	files["/proc/78/net/tcp"] = files["/proc/77/net/tcp"]
	files["/proc/79/comm"] = "nginx\n"
	root := tree(t, files)
	for _, pid := range []string{"77", "78", "79"} {
		dir := filepath.Join(root.Dir, "proc", pid, "fd")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for fd, link := range map[string]string{
			"0": "/dev/null", "6": "socket:[12345]", "7": "socket:[777]",
			"8": "socket:[12346]",
		} {
			if err := os.Symlink(link, filepath.Join(dir, fd)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := Listeners(root, func(comm string) bool { return comm == "redis-server" })
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Addr.String() != "0.0.0.0:6379" || got[1].Addr.String() != "[::1]:6379" ||
		got[0].Process.PID != 77 || got[1].Process.Port != 6379 {
		t.Errorf("got %+v", got)
	}
}
