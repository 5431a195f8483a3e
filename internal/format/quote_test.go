package format

import "testing"

// quoted are names, and what Shell makes of them.
var quoted = map[string]string{
	"redis-server": "redis-server", "10.0.0.7:6379": "10.0.0.7:6379",
	"/sys/fs/cgroup/a@b.service": "/sys/fs/cgroup/a@b.service",
	"x; rm -rf /":                "'x; rm -rf /'",
	"$(id)":                      "'$(id)'", "it's": `'it'\''s'`, "": "''", "`id`": "'`id`'", "a b": "'a b'",
	"näme": "'näme'", "~root": "'~root'", "*": "'*'", "#c": "'#c'", "'; id; '": `''\''; id; '\'''`, "a\nid": "'a\nid'",
}

func TestShell(t *testing.T) {
	for name, want := range quoted {
		if got := Shell(name); got != want {
			t.Errorf("Shell(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"10.0.0.7:40312 (app[12], jedis 5.1.0)": "10.0.0.7:40312 (app[12], jedis 5.1.0)", "worker": "worker",
		"x; rm -rf /": "'x; rm -rf /'", "$(id)": "'$(id)'",
		"a: kill -9 1": "'a: kill -9 1'", "a or kill 1": "'a or kill 1'",
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
}
