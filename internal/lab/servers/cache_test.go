package servers

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLockEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		unlock, err := lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a held lock: %v", err)
		}
		time.AfterFunc(time.Minute, unlock)
		again, err := lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		again()
	})
}

func TestOpenCache(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", base)
	c, err := OpenCache("")
	if err != nil || c.dir != filepath.Join(base, "slowpath", "servers") {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := OpenCache(filepath.Join(base, "redis-check-rdb")); err == nil {
		t.Error("a path that would make the server a checker was taken")
	}
}

func TestArgv(t *testing.T) {
	s := Server{Name: Redis802, Product: "redis", Version: "8.0.2"}
	for _, test := range []struct {
		name      string
		m         manifest
		argv, env []string
	}{
		{
			"plain",
			manifest{Program: "/usr/bin/redis-server", File: "/usr/bin/redis-check-rdb"},
			[]string{"/usr/bin/redis-server", "x.conf"},
			nil,
		},
		{
			"libraries",
			manifest{Program: "bin/redis-server", File: "f", Libs: []string{"a", "b"}},
			[]string{"/c/bin/redis-server", "x.conf"},
			[]string{"LD_LIBRARY_PATH=/c/a:/c/b"},
		},
		{
			"loader",
			manifest{Program: "bin/redis-server", File: "f", Libs: []string{"a"}, Loader: true},
			[]string{
				"/c/bin/redis-server", "--library-path", "/c/a", "--argv0", "/c/bin/redis-server", "/c/f",
				"x.conf",
			},
			nil,
		},
	} {
		b := test.m.binary(s, "/c")
		if got := b.Argv("x.conf"); !slices.Equal(got, test.argv) || !slices.Equal(b.Env, test.env) {
			t.Errorf("%s: argv %q env %q", test.name, got, b.Env)
		}
	}
}
