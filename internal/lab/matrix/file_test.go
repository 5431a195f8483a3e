package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sample is a matrix of incident 000 in small.
func sample() *Matrix {
	m := &Matrix{
		Schema: Schema, Version: "test", Start: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), CPUs: 2,
		Settings: Quick(), Cells: []Cell{},
	}
	for i, c := range (Plan{
		Clients: []string{"go-redis-v6", "go-redis-v8"}, Servers: []string{"redis-6.0.16"},
		Topologies: []string{Cluster},
	}).Cells() {
		c.Calls, c.RequestsPerSecond, c.P50Ns, c.P99Ns, c.MaxNs, c.Finding = 200, 100+float64(i)*10_000, 1000, 2000,
			3000, "healthy"
		m.Put(c)
	}
	return m
}

func TestSaveAndResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	fresh := &Matrix{Schema: Schema, Version: "newer", Settings: Quick(), Cells: []Cell{}}
	if m, err := Resume(path, fresh); err != nil || m != fresh {
		t.Errorf("no file: %v, %v", m, err)
	}
	want := sample()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	want.Version = "newer"
	if m, err := Resume(path, fresh); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, m, want)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%v beside the file (%v)", left, err)
	}
	other := *fresh
	other.Settings.Workers++
	if _, err := Resume(path, &other); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "100 workers") {
		t.Errorf("other settings: %v", err)
	}
	older := *want // before there was a share
	older.Settings.WatchShare = 0
	if err := older.Save(path); err != nil {
		t.Fatal(err)
	}
	_, err = Resume(path, fresh)
	if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "at 1 of the calls/s") {
		t.Errorf("of an older version: %v", err)
	}
	if _, err := Resume(filepath.Dir(path), fresh); !errors.Is(err, ErrFile) {
		t.Errorf("a directory: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	body := func(change func(*Matrix)) string {
		m := sample()
		change(m)
		path := filepath.Join(t.TempDir(), "m.json")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, test := range map[string]struct{ text, says string }{
		"nothing":             {"", "unexpected end"},
		"another document":    {`{"schema": "slowpath.bench/v1"}`, "slowpath.bench/v1"},
		"no settings":         {`{"schema": "slowpath.matrix/v1"}`, "0 workers"},
		"a cell of nobody":    {body(func(m *Matrix) { m.Cells[1].Client = "" }), "cell 1"},
		"an unknown topology": {body(func(m *Matrix) { m.Cells[0].Topology = "ring" }), "ring"},
		"a cell twice":        {body(func(m *Matrix) { m.Cells[1] = m.Cells[0] }), "twice"},
		"more errors":         {body(func(m *Matrix) { m.Cells[0].Errors = 201 }), "contradict"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(test.text)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(),
				test.says) {
				t.Error(err)
			}
		})
	}
}

// FuzzParse: what is read as a matrix is the same when it is saved and read again.
func FuzzParse(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.json")
	if err := sample().Save(path); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schema":"slowpath.matrix/v1","cells":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Error(err)
			}
			return
		}
		path := filepath.Join(t.TempDir(), "m.json")
		if err := m.Save(path); err != nil {
			t.Skip(err) // a year that JSON has no form for
		}
		if again, err := Resume(path, m); err != nil || len(again.Cells) != len(m.Cells) {
			t.Errorf("%v: %+v", err, again)
		}
	})
}

func TestOnly(t *testing.T) {
	m := sample()
	asked := []Cell{m.Cells[1], {Client: "jedis", Server: "redis-6.0.16", Topology: Cluster}}
	got := m.Only(asked)
	if len(got.Cells) != 1 || got.Cells[0].Client != "go-redis-v8" || !got.Interrupted || m.Interrupted {
		t.Errorf("%+v", got)
	}
	if got := m.Only(m.Cells[:1]); got.Interrupted || len(got.Cells) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSummary(t *testing.T) {
	m := sample()
	m.Cells[0].Finding = "cmdinfo-once-lock"
	if got, want := m.Summary(), "2 of 2 cells have figures; from 100 calls per second (go-redis-v6 on redis-6.0.16, "+
		"cluster: cmdinfo-once-lock) to 10100 (go-redis-v8 on redis-6.0.16, cluster)."; got != want {
		t.Errorf("%q", got)
	}
	m.Cells[0].Empty = "no Go"
	if got := m.Summary(); got != "1 of 2 cells have figures." {
		t.Errorf("%q", got)
	}
}

func TestTodo(t *testing.T) {
	m := sample()
	p := Plan{
		Clients: []string{"go-redis-v6", "go-redis-v8", "jedis"}, Servers: []string{"redis-6.0.16"},
		Topologies: []string{Cluster},
	}
	m.Put(Cell{Client: "go-redis-v6", Server: "redis-6.0.16", Topology: Cluster, Empty: "no Go", Again: true})
	todo := p.Todo(m)
	if len(m.Cells) != 2 || len(todo) != 2 || todo[0].Client != "go-redis-v6" || todo[0].Empty != "" ||
		todo[1].Client != "jedis" {
		t.Errorf("%+v of %+v", todo, m.Cells)
	}
	if s := m.Settings; Expected(todo, s) <= 2*(s.Warmup+s.Duration+s.Watch) || Expected(nil, s) != 0 {
		t.Errorf("expected %v", Expected(todo, s))
	}
}

func TestCheckSettings(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"no workers": func(s *Settings) { s.Workers = 0 }, "too many": func(s *Settings) { s.Workers = 1e6 },
		"no time":          func(s *Settings) { s.Duration = 0 },
		"a negative watch": func(s *Settings) { s.Watch = -1 }, "no keys": func(s *Settings) { s.Keys = 0 },
		"two masters": func(s *Settings) { s.Masters = 2 },
	} {
		s := Quick()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&s); !errors.Is(s.Check(), ErrSettings) {
			t.Errorf("%s: %v", name, s.Check())
		}
	}
}
