package layout

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/needs"
)

func TestStyleOfTerminal(t *testing.T) {
	needs.Real(t)
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 132}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		want Style
	}{
		{map[string]string{"TERM": "xterm", "LANG": "C.UTF-8"}, Style{Width: 132, Color: true, Unicode: true}},
		{map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, Style{Width: 132}},
		{map[string]string{"TERM": "xterm", "NO_COLOR": ""}, Style{Width: 132, Color: true}},
		{map[string]string{"TERM": "dumb"}, Style{Width: 132}},
	} {
		if got := StyleOf(tty, func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.env, got, c.want)
		}
	}
}
