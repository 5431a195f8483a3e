package cause

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"slowpath/internal/recording"
)

// built adds a client's process that is built with a library.
func (e edge) built(name, version string) edge {
	return e.process(recording.Library{Name: name, Version: version, How: recording.LibraryBuiltIn})
}

func (e edge) process(libraries ...recording.Library) edge {
	body, err := json.Marshal(map[string]any{"comm": "app", "libraries": libraries})
	if err != nil {
		panic(err)
	}
	e.Snapshot(recording.Snapshot{Source: recording.SourceHost, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app), Name: "process", Body: string(body)})
	return e
}

// listed adds a client that tells its library to the server.
func (e edge) listed(name, version string) edge {
	return e.snapshot(recording.SourceServer, "clients", Client{Addr: "10.0.0.1:1", LibName: name, LibVer: version})
}

func TestLibrary(t *testing.T) {
	lines := map[string]string{"go-redis": "nine", "go-redis@8": "eight", "jedis": "jedis", "redis-py": "py"}
	order := []string{"go-redis", "go-redis@8", "jedis", "redis-py"}
	installed := func(name, version string) recording.Library {
		return recording.Library{Name: name, Version: version, How: recording.LibraryInstalled}
	}
	caller := func(comm string) edge { return newEdge("redis 7.0.15").used(app, comm, 5000, 400, 0.5) }
	for name, tt := range map[string]struct {
		rec  edge
		want []string
	}{
		"nothing tells":                         {newEdge("redis 7.0.15"), []string{"nine", "eight", "jedis", "py"}},
		"built in":                              {newEdge("redis 7.0.15").built("go-redis", "8.11.5"), []string{"eight (go-redis 8.11.5 is in use here)"}},
		"a version without options of its own":  {newEdge("redis 7.0.15").built("go-redis", "9.23.0"), []string{"nine (go-redis 9.23.0 is in use here)"}},
		"CLIENT LIST":                           {newEdge("redis 7.4.0").listed("go-redis(,go1.25)", "9.7.0"), []string{"nine (go-redis 9.7.0 is in use here)"}},
		"CLIENT LIST without a version":         {newEdge("redis 7.4.0").listed("jedis", ""), []string{"jedis"}},
		"two":                                   {newEdge("redis 7.4.0").listed("jedis", "5.0.0").built("go-redis", "8.0.0"), []string{"eight (go-redis 8.0.0 is in use here)", "jedis (jedis 5.0.0 is in use here)"}},
		"installed":                             {newEdge("redis 7.0.15").process(installed("redis-py", "7.1.0")), []string{"py (redis-py 7.1.0 is installed here)"}},
		"installed, and it says which of them":  {newEdge("redis 7.4.0").process(installed("ioredis", "5.0.0"), installed("redis-py", "7.1.0")).listed("redis-py", "7.0.0"), []string{"py (redis-py 7.0.0 is in use here)"}},
		"one that there is no line for":         {newEdge("redis 7.0.15").built("rueidis", "1.0.79"), []string{"nine", "eight", "jedis", "py"}},
		"a runtime":                             {caller("python3"), []string{"py"}},
		"a runtime without a line":              {caller("node"), []string{"nine", "eight", "jedis", "py"}},
		"a program that may be of any language": {caller("shop"), []string{"nine", "eight", "jedis", "py"}},
	} {
		tt.rec.Index()
		if got := newCase(tt.rec.Recording).Nodes[0].library(lines, order...); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
