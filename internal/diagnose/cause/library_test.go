package cause_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
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
	e.Snapshot(recording.Snapshot{Source: recording.SourceHost, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix,
		app), Name: "process", Body: string(body)})
	return e
}

// listed adds a client that reports its library to the server.
func (e edge) listed(name, version string) edge {
	return e.snapshot(recording.SourceServer, "clients", caller.Client{
		Addr: "10.0.0.1:1", LibName: name,
		LibVer: version,
	})
}

// greeted adds a connection of a client on another host, with its handshake.
func (e edge) greeted(port int, d recording.HandshakeDetail) edge {
	client := fmt.Sprintf("10.9.9.9:%d", port)
	d.Client, d.Side = client, recording.Server
	e.event(recording.SourceTap, recording.KindOpen, second, 0, recording.ConnDetail{
		Client: client,
		Side:   recording.Server,
	})
	e.event(recording.SourceTap, recording.KindHandshake, second, edgeMs, d)
	return e
}

func TestLibrary(t *testing.T) {
	rows := []remedy.Row{
		{Library: "go-redis", Text: "nine"},
		{Library: "go-redis", Version: "8", Text: "eight"},
		{Library: "jedis", Text: "jedis"},
		{Library: "redis-py", Text: "py"},
		{Library: "node-redis", Text: "node"},
		{Library: "lettuce", Text: "lettuce"},
		{Library: "ioredis", Text: "io"},
	}
	all := []string{"nine", "eight", "jedis", "py", "node", "lettuce", "io"}
	installed := func(name, version string) recording.Library {
		return recording.Library{Name: name, Version: version, How: recording.LibraryInstalled}
	}
	caller := func(comm string) edge { return newEdge("redis 7.0.15").used(app, comm, 5000, 400, 0.5) }
	for name, tt := range map[string]struct {
		rec  edge
		want []string
	}{
		"nothing tells": {newEdge("redis 7.0.15"), all},
		"built in": {
			newEdge("redis 7.0.15").built("go-redis", "8.11.5"),
			[]string{"eight (go-redis 8.11.5 is in use here)"},
		},
		"a version without options of its own": {
			newEdge("redis 7.0.15").built("go-redis", "9.23.0"),
			[]string{"nine (go-redis 9.23.0 is in use here)"},
		},
		"CLIENT LIST": {
			newEdge("redis 7.4.0").listed("go-redis(,go1.25)", "9.7.0"),
			[]string{"nine (go-redis 9.7.0 is in use here)"},
		},
		"CLIENT LIST without a version": {newEdge("redis 7.4.0").listed("jedis", ""), []string{"jedis"}},
		"two": {newEdge("redis 7.4.0").listed("jedis", "5.0.0").built("go-redis",
			"8.0.0"), []string{"eight (go-redis 8.0.0 is in use here)", "jedis (jedis 5.0.0 is in use here)"}},
		"installed": {
			newEdge("redis 7.0.15").process(installed("redis-py", "7.1.0")),
			[]string{"py (redis-py 7.1.0 is installed here)"},
		},
		"installed, and it says which of them": {
			newEdge("redis 7.4.0").process(installed("ioredis", "5.0.0"),
				installed("redis-py", "7.1.0")).listed("redis-py", "7.0.0"),
			[]string{"py (redis-py 7.0.0 is in use here)"},
		},
		"one that there is no line for": {newEdge("redis 7.0.15").built("rueidis", "1.0.79"), all},
		"a runtime":                     {caller("python3"), []string{"py"}},
		"a runtime without a line":      {caller("php"), nil},
		"what it calls itself on a connection": {
			newEdge("redis 6.2.14").greeted(1,
				recording.HandshakeDetail{Ops: greets, Library: "go-redis", Version: "9.23.0"}),
			[]string{"nine (go-redis 9.23.0 is in use here)"},
		},
		"half of a name": {
			newEdge("redis 6.2.14").greeted(1,
				recording.HandshakeDetail{Library: "node-red", Version: "6.3.1"}),
			[]string{"node (node-redis 6.3.1 is in use here)"},
		},
		"numbers of a version": {
			newEdge("redis 6.2.14").greeted(1,
				recording.HandshakeDetail{Library: "lettuce", Version: "6.8.1.re"}),
			[]string{"lettuce (lettuce 6.8.1 is in use here)"},
		},
		"more is known of its process": {
			newEdge("redis 6.2.14").built("go-redis", "8.11.5").greeted(1,
				recording.HandshakeDetail{Library: "go-redis", Version: "8.11.5-"}),
			[]string{"eight (go-redis 8.11.5 is in use here)"},
		},
		"no HELLO, no INFO": {newEdge("redis 6.2.14").greeted(1,
			recording.HandshakeDetail{Op: "GET"}), []string{"eight", "jedis", "py", "node"}},
		"HELLO": {newEdge("redis 6.2.14").greeted(1,
			recording.HandshakeDetail{Ops: []string{"HELLO"}, Op: "GET"}), []string{
			"nine", "jedis", "py", "node",
			"lettuce",
		}},
		"HELLO, and INFO": {newEdge("redis 6.2.14").greeted(1,
			recording.HandshakeDetail{Ops: []string{"HELLO", "INFO"}}), []string{"io"}},
		"HELLO of one, none of another": {
			newEdge("redis 6.2.14").greeted(1,
				recording.HandshakeDetail{Ops: []string{"HELLO"}}).greeted(2, recording.HandshakeDetail{Op: "GET"}),
			[]string{"nine", "eight", "jedis", "py", "node", "lettuce"},
		},
		"two of a runtime": {caller("node"), []string{"node", "io"}},
		"a Go program": {
			caller("shop").runtime(`{"go":"go1.26.1"}`), []string{"nine", "eight"},
		},
		"a Go program behind a proxy, with what it was built with": {
			caller("shop").runtime(`{"go":"go1.26.1","libraries":[{"name":"go-redis","version":"8.11.5",` +
				`"how":"built-in"}]}`), []string{"eight (go-redis 8.11.5 is in use here)"},
		},
		"one that there is no line for, of all callers": {caller("shop").built("rueidis", "1.0.79"), nil},
		"a program that may be of any language":         {caller("shop"), all},
	} {
		tt.rec.Index()
		var got []string
		for _, row := range remedy.Choose(facts.New(tt.rec.Recording).Nodes[0], rows) {
			got = append(got, row.Text)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestLibraryOfCaller: what is about one caller is for its library alone.
func TestLibraryOfCaller(t *testing.T) {
	rows := []remedy.Row{
		{Library: "go-redis", Text: "go"},
		{Library: "jedis", Text: "jedis"},
		{Library: "redis-py", Text: "py"},
		{Library: "other", Text: "any"},
	}
	shop := func() edge { return newEdge("redis 7.4.0").used(app, "shop", 5000, 400, 0.5) }
	for name, tt := range map[string]struct {
		rec  edge
		want []string
	}{
		"what its process is built with": {
			shop().built("go-redis", "9.7.0").listed("jedis", "5.0.0"),
			[]string{"go (go-redis 9.7.0 is in use here)"},
		},
		"what its connections report": {
			shop().snapshot(recording.SourceServer, "clients",
				caller.Client{Addr: address(5000), LibName: "redis-py", LibVer: "7.0.0"}),
			[]string{"py (redis-py 7.0.0 is in use here)"},
		},
		"only others are known": {
			shop().listed("jedis", "5.0.0"),
			[]string{"go", "jedis", "py", "any"},
		},
		"one that there is no line for": {
			shop().built("rueidis", "1.0.79").listed("jedis", "5.0.0"),
			[]string{"any"},
		},
	} {
		tt.rec.Index()
		n := facts.New(tt.rec.Recording).Nodes[0]
		var got []string
		for _, row := range remedy.Choose(n, rows, caller.Callers(n)[0]) {
			got = append(got, row.Text)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
