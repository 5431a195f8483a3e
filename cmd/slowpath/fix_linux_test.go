package main

import (
	"context"
	"io"
	"os"
	"os/user"
	"strings"
	"testing"
)

// TestEnter: Enter counts from when somebody is asked for it, and not before.
func TestEnter(t *testing.T) {
	keys, typing := io.Pipe()
	e := listen(keys)
	for _, text := range []string{"x\n", "half a li"} { // the second is read once the first was dealt with
		if _, err := typing.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.pressed) > 0 {
		t.Fatal("what was typed before counts")
	}
	e.asked.Store(true)
	go func() { _, _ = typing.Write([]byte("ne\n")) }() // nobody reads after the line
	if err := <-e.pressed; err != nil {
		t.Error(err)
	}
	if e = listen(strings.NewReader("")); e.await(t.Context(), testApp()) == nil {
		t.Error("a terminal that is gone is as good as Enter")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := listen(keys).await(ended, testApp()); err != nil {
		t.Error(err)
	}
}

// TestRunAsCaller: the command of --run has the rights of who called sudo, and not those of root.
func TestRunAsCaller(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	nobody, err := user.LookupId("65534")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("SUDO_UID", nobody.Uid)
	t.Setenv("SUDO_GID", nobody.Gid)
	fix := fixFlags{run: `echo $(id -u) $(id -g) $HOME $USER; id -G`}
	c := fix.command(t.Context(), testApp())
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
