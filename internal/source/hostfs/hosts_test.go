package hostfs

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostNames(t *testing.T) {
	root := Root{Dir: t.TempDir()}
	if names := HostNames(root); len(names) != 0 {
		t.Errorf("without a file: %v", names)
	}
	file := filepath.Join(root.Dir, "etc", "hosts")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "127.0.0.1 localhost\n10.0.0.7\tapp-3.prod. app-3 # the shop\n10.0.0.7 other\n#10.0.0.8 gone\n" +
		"fe80::1%lo0 link\n::ffff:10.0.0.9 mapped\n10.0.0.10 a\x1b[1mb\n10.0.0.11\nnonsense x\n2001:db8::1 six\n" +
		"10.0.0.12 " + strings.Repeat("x", 300) + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	names := HostNames(root)
	for address, want := range map[string]string{
		"127.0.0.1": "localhost", "10.0.0.7": "app-3.prod", "10.0.0.8": "", "10.0.0.9": "mapped", "10.0.0.10": "",
		"10.0.0.11": "", "10.0.0.12": "", "2001:db8::1": "six",
	} {
		if got := names[netip.MustParseAddr(address)]; got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat(text, maxHostsFile/len(text)+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if names := HostNames(root); len(names) != 0 {
		t.Errorf("of a file without end: %v", names)
	}
}

func FuzzHostName(f *testing.F) {
	f.Add("app-3.prod.")
	f.Add("a\x1b[1mb")
	f.Fuzz(func(t *testing.T, s string) {
		if name := HostName(s); strings.ContainsAny(name, "\x1b\n\r\t ;'\"$`") || len(name) > maxHostName {
			t.Errorf("%q", name)
		}
	})
}
