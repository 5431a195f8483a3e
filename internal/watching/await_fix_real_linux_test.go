package watching

import (
	"io"
	"os"
	"os/user"
	"strings"
	"testing"

	"slowpath/internal/cli"
	"slowpath/internal/house/needs"
)

// TestRunAsCaller: the command of --run has the rights of who called sudo, and not those of root.
func TestRunAsCaller(t *testing.T) {
	needs.Real(t, needs.Root)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	nobody, err := user.LookupId("65534")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("SUDO_UID", nobody.Uid)
	t.Setenv("SUDO_GID", nobody.Gid)
	fix := Fix{Run: `echo $(id -u) $(id -g) $HOME $USER; id -G`}
	c := fix.command(t.Context(), &cli.Program{Stderr: io.Discard})
	var out strings.Builder
	c.Stdout = &out
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	want := nobody.Uid + " " + nobody.Gid + " " + nobody.HomeDir + " " + nobody.Username + "\n" + nobody.Gid + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
