package servers

import (
	"errors"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	if len(Known()) != 8 {
		t.Errorf("Known() = %v", Known())
	}
	for _, name := range Known() {
		if s, err := Lookup(name); err != nil || string(s.Name) != s.Product+"-"+s.Version {
			t.Errorf("Lookup(%s) = %v, %v", name, s, err)
		}
	}
	if _, err := Lookup("redis-1.0"); err == nil || !strings.Contains(err.Error(), "valkey-8.1.1") {
		t.Errorf("Lookup of an unknown name: %v", err)
	}
}

func TestMissingToolSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c := openTemp(t)
	for name, want := range map[Name]string{
		Redis506: "apt-get install gcc", Redis6016: "apt-get install apt", Redis6214: "apt-get install python3-pip",
		Redis7015: "apt-get install apt", Redis802: "apt-get install apt",
		Redis823: "apt-get install python3-pip", Valkey811: "apt-get install apt",
		Valkey912: "apt-get install python3-pip",
	} {
		_, err := c.Get(t.Context(), name, nil)
		if err == nil || !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, wanted %q", name, err, want)
		}
	}
	if left := globIn(c.dir, ".tmp-*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func openTemp(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
