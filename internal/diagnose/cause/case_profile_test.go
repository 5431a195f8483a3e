package cause_test

import (
	"fmt"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// Stacks of goroutines, as Go's profiles have them.
const (
	v6Waits = "main.main.func1 > github.com/go-redis/redis.(*cmdsInfoCache).Get > " +
		"github.com/go-redis/redis/internal.(*Once).Do > sync.(*Mutex).Lock > internal/sync.(*Mutex).lockSlow"
	v6Holds = "main.main.func1 > github.com/go-redis/redis.(*cmdsInfoCache).Get > " +
		"github.com/go-redis/redis/internal.(*Once).Do > github.com/go-redis/redis.(*ClusterClient).cmdsInfo > " +
		"github.com/go-redis/redis/internal/proto.(*Reader).ReadLine > net.(*conn).Read"
	v6Unlock = "github.com/go-redis/redis.(*cmdsInfoCache).Get > github.com/go-redis/redis/internal.(*Once).Do > " +
		"sync.(*Mutex).Unlock"
	v9Pool = "main.main.func1 > github.com/redis/go-redis/v9/internal/pool.(*ConnPool).waitTurn > " +
		"github.com/redis/go-redis/v9/internal.(*FastSemaphore).Acquire"
	v9Reply = "main.main.func1 > github.com/redis/go-redis/v9/internal/proto.(*Reader).ReadLine > net.(*conn).Read"
	webIdle = "net/http.(*conn).serve > net.(*conn).Read"
)

// goroutines adds a reading: how many have each stack.
func (e edge) goroutines(at int64, counts map[string]int64) edge {
	return e.profile(recording.ProfileGoroutine, at, []stacks.Type{{Name: "goroutine", Unit: "count"}}, counts)
}

// mutexDelay adds what was counted of it in the watch, in nanoseconds.
func (e edge) mutexDelay(ns map[string]int64) edge {
	return e.profile(recording.ProfileMutex, edgeEnd, []stacks.Type{
		{Name: "contentions", Unit: "count"},
		{Name: "delay", Unit: "nanoseconds"},
	}, ns)
}

func (e edge) profile(kind string, at int64, types []stacks.Type, values map[string]int64) edge {
	const subject = recording.PprofPrefix + "10.0.0.9:6060"
	p := &stacks.Profile{Types: types}
	for stack, v := range values {
		s := stacks.Stack{Frames: strings.Split(stack, " > "), Values: []int64{v}}
		if len(types) > 1 {
			s.Values = []int64{1, v}
		}
		p.Stacks = append(p.Stacks, s)
	}
	body, err := stacks.Write(p)
	if err != nil {
		panic(err)
	}
	e.Profile(recording.Profile{TimeNs: at, Subject: subject, Kind: kind, Pprof: body})
	e.Snapshot(recording.Snapshot{
		TimeNs: at, Source: recording.SourceProfile, Subject: subject, Name: "application",
		Body: recording.Detail(recording.Profiled{Address: "10.0.0.9:6060", Name: "shop", Runtime: "go"}),
	})
	return e
}

// running adds samples of the client's program: its thread, which holds the lock where there is one, is in a function.
func (e edge) running(kind, function string) edge {
	p := &stacks.Profile{Types: []stacks.Type{{Name: "holds_lock", Unit: "count"}}}
	for at := int64(0); at < edgeEnd; at += 20 * edgeMs {
		p.Stacks = append(p.Stacks, stacks.Stack{
			Frames: []string{"thread 7", "main (shop.rb:20)", function}, Values: []int64{1}, TimeNs: at, TID: 7,
		})
	}
	body, err := stacks.Write(p)
	if err != nil {
		panic(err)
	}
	subject := fmt.Sprintf("%s%d", recording.ProcessPrefix, app)
	e.Profile(recording.Profile{TimeNs: edgeEnd, Subject: subject, Kind: kind, Pprof: body})
	if kind == recording.ProfileCPUClock {
		e.Snapshot(recording.Snapshot{
			Source: recording.SourceProfile, Subject: subject, Name: recording.SnapshotApplication,
			Body: recording.Detail(recording.Profiled{PID: app, Name: "java", Runtime: "jvm"}),
		})
	}
	return e
}

// allAlong adds the same reading each second.
func (e edge) allAlong(counts map[string]int64) edge {
	for s := range int64(10) {
		e.goroutines(s*second, counts)
	}
	return e
}
