package host

import "testing"

// TestReplaced: which lines of /proc/PID/maps are code in a file that only /proc/PID/map_files has.
func TestReplaced(t *testing.T) {
	const place = "7f0000000000-7f0000001000 "
	for maps, want := range map[string]bool{
		"": false,
		place + "r-xp 00000000 08:01 42                  /usr/lib/libssl.so.3\n":             false,
		place + "r-xp 00000000 08:01 42                  /usr/lib/libssl.so.3 (deleted)\n":   true,
		place + "r-xp 00000000 08:01 42                  /usr/lib/libssl.so.3 (deleted)":     true,
		place + "r--p 00000000 08:01 42                  /usr/lib/libssl.so.3 (deleted)\n":   false,
		place + "rw-p 00000000 08:01 42                  /tmp/data (deleted)\n":              false,
		place + "r-xp 00000000 00:01 42                  /memfd:code (deleted)\n":            false,
		place + "rwxs 00000000 00:01 42                  /dev/zero (deleted)\n":              false,
		place + "r-xp 00000000 00:00 0 \n" + "no line\n" + "\n":                              false,
		place + "r-xp 00000000 00:00 0                   [vdso]\n" + "x r-xp /a (deleted)\n": true,
	} {
		if got := Replaced(tree(t, map[string]string{"/proc/77/maps": maps}), 77); got != want {
			t.Errorf("%q: %v", maps, got)
		}
	}
	if Replaced(tree(t, nil), 77) || Replaced(tree(t, nil), 0) {
		t.Error("a process that is not there has a file")
	}
}
