//go:build linux

package tap

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slowpath/internal/house/needs"
)

// TestInnerFunction: where it is found, a function begins there, and it is hooked in place of those that have names.
func TestInnerFunction(t *testing.T) {
	needs.Real(t)
	paths, _ := filepath.Glob("/usr/lib/*/libssl.so.*") // the pattern is well formed
	if cache, err := os.UserCacheDir(); err == nil {    // of the lab's servers
		more, _ := filepath.Glob(filepath.Join(cache, "slowpath/servers/*/root/usr/lib/*/libssl.so.*"))
		paths = append(paths, more...)
	}
	if len(paths) == 0 {
		t.Skip("needs libssl")
	}
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for role, outer := range plaintextFunctions {
			o, err := places(f, role)
			if err != nil || len(o.Addresses) == 0 || len(o.Addresses) != len(o.Cookies) {
				t.Errorf("%s: %v, %v", path, o, err)
			}
			if at, ok := innerFunction(f, outer); ok && (at%16 != 0 && at%16 != 4 || !slices.Equal(o.Addresses,
				[]uint64{at})) {
				t.Errorf("%s: %s call %x; hooked: %v", path, outer, at, o)
			}
		}
		if _, ok := innerFunction(f, []string{"SSL_read", "SSL_new"}); ok {
			t.Error("SSL_read and SSL_new have no function in common")
		}
	}
}
