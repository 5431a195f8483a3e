package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

func TestTallySumsUp(t *testing.T) {
	tally := NewTally(time.Now())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				var err error
				if i%10 == 0 {
					err = errors.New("MOVED 1 127.0.0.1:1")
				}
				tally.Add(time.Now().Add(-time.Duration(i)), err)
			}
		})
	}
	wg.Wait()
	tally.Add(time.Now().Add(-time.Hour), nil) // began before the start
	s := tally.Summary()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseSummary(text); err != nil {
		t.Fatal(err)
	}
	// Calls whose start was put before that of the tally are left out, of each worker at most those of the first
	// microsecond.
	if s.Calls > 8000 || s.Calls < 7000 || s.ErrorKinds["MOVED"] != s.Errors || s.Errors == 0 || s.Max <= 0 ||
		s.Max >= time.Hour {
		t.Errorf("%v, kinds %v", s, s.ErrorKinds)
	}
}

func TestTallyBoundsKinds(t *testing.T) {
	tally := NewTally(time.Now())
	for i := range 100 * tallyShards * kindLimit {
		tally.Add(time.Now(), fmt.Errorf("%c%c%c error", 'A'+i%26, 'A'+i/26%26, 'A'+i/676%26))
	}
	s := tally.Summary()
	if len(s.ErrorKinds) > tallyShards*kindLimit+1 || s.ErrorKinds[KindOther] == 0 {
		t.Errorf("%d kinds, %d other", len(s.ErrorKinds), s.ErrorKinds[KindOther])
	}
}

func TestKind(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("MOVED 3999 127.0.0.1:6381"), "MOVED"},
		{errors.New("CLUSTERDOWN The cluster is down"), "CLUSTERDOWN"},
		{errors.New("ERR unknown command"), "ERR"},
		{errors.New("redis: connection pool timeout"), KindPoolTimeout},
		{errors.New("redigo: connection pool exhausted"), KindPoolTimeout},
		{fmt.Errorf("calling: %w", context.DeadlineExceeded), KindTimeout},
		{&net.OpError{Op: "read", Err: &net.DNSError{IsTimeout: true}}, KindTimeout},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, KindConnection},
		{io.EOF, KindConnection},
		{errors.New("A strange thing"), KindOther},
		{errors.New(""), KindOther},
	} {
		if got := Kind(test.err); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
	}
}

func TestCheckOptions(t *testing.T) {
	ok := Options{Addresses: []string{"127.0.0.1:1"}, Workers: 1, Commands: []Command{{Args: []string{"PING"}}}}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no address":        func(o *Options) { o.Addresses = nil },
		"a strange mode":    func(o *Options) { o.Mode = "sentinel" },
		"too many servers":  func(o *Options) { o.Addresses = []string{"a:1", "b:1"} },
		"no command":        func(o *Options) { o.Commands = nil },
		"an empty command":  func(o *Options) { o.Commands = []Command{{}} },
		"a negative weight": func(o *Options) { o.Commands = []Command{{Args: []string{"PING"}, Weight: -1}} },
		"nobody calls":      func(o *Options) { o.Workers = 0 },
		"a negative time":   func(o *Options) { o.Duration = -1 },
		"own, clustered":    func(o *Options) { o.OwnConnections, o.Mode = true, Cluster },
		"own, of requests":  func(o *Options) { o.OwnConnections, o.Listen = true, "127.0.0.1:0" },
		"a client per call": func(o *Options) { o.Listen, o.CallsPerClient = "127.0.0.1:0", 1 },
	} {
		o := ok
		change(&o)
		if err := o.Check(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
