package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLock: a directory has one agent at a time.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDirectory(path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "pid ") {
		t.Errorf("the second: %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDirectory(path)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.close()
}

// TestLinkedLock: a lock that is a link to another file leaves that file alone.
func TestLinkedLock(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Symlink(other, filepath.Join(data, lockName))); err != nil {
		t.Fatal(err)
	}
	if d, err := openDirectory(data); err == nil {
		d.close()
		t.Error("the link was followed")
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "kept" {
		t.Errorf("the other file holds %q, %v", b, err)
	}
}

// TestServers: those that are found may be away for a while; those that are named stay.
func TestServers(t *testing.T) {
	var s servers
	now := time.Unix(testTime, 0)
	if !s.look([]string{"a:1", "b:2"}, true, now) || s.look([]string{"b:2", "a:1"}, true, now) {
		t.Error("the first look changes, the same again does not")
	}
	if s.look([]string{"a:1"}, true, now.Add(time.Minute)) {
		t.Error("a server that has just gone may come back")
	}
	if s.look([]string{"a:1", "b:2"}, true, now.Add(2*time.Minute)) {
		t.Error("it is back")
	}
	s.look([]string{"a:1"}, true, now.Add(3*time.Minute))
	if !s.look([]string{"a:1"}, true, now.Add(7*time.Minute)) || len(s.all()) != 1 {
		t.Errorf("it is gone for good: %+v", s.all())
	}
	if !s.look([]string{"c:3"}, false, now) || len(s.all()) != 1 {
		t.Errorf("now another is named: %+v", s.all())
	}
	if !s.set("c:3", false, "connection\nrefused\x1b[2J") || s.all()[0].Why != "connection refused[2J" &&
		strings.ContainsAny(s.all()[0].Why, "\n\x1b") {
		t.Errorf("why: %q", s.all()[0].Why)
	}
	if s.set("c:3", false, "connection\nrefused\x1b[2J") {
		t.Error("the same is no news")
	}
}
