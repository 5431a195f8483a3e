package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// played gives all requests of a replay, with when they are due.
func played(t *testing.T, r *Replay, streams int, speed float64) (lines []string) {
	t.Helper()
	for _, s := range r.Streams(streams, 0, speed) {
		for {
			due, ok := s.Due()
			if !ok {
				break
			}
			b, q := s.Next(nil)
			var all []string
			for _, args := range commandsOf(t, b) {
				all = append(all, strings.Join(args, " "))
			}
			if len(all) != int(q.Replies) {
				t.Errorf("%v has %d replies", all, q.Replies)
			}
			lines = append(lines, due.String()+" "+r.Ops[q.Op].Name+": "+strings.Join(all, "; "))
		}
	}
	return lines
}

const monitorLog = `OK
1700000000.000100 [0 10.0.0.1:5000] "SET" "user:\"1\"" "a\x00b\r\n\\"
1700000000.250100 [3 [::1]:5001] "get" "user:1"
1700000000.300100 [0 10.0.0.1:5000] "MULTI"
1700000000.300200 [0 unix:/run/redis.sock] "LPUSH" "l" "x"
1700000000.300300 [0 10.0.0.1:5000] "INCR" "n"
1700000000.300400 [0 10.0.0.1:5000] "MGET" "a" "b"
1700000000.300500 [0 10.0.0.1:5000] "EXEC"
1700000000.400000 [0 lua] "SET" "in-script" "1"
1700000000.400100 [0 10.0.0.1:5000] "FLUSHALL"
1700000000.400200 [0 10.0.0.1:5000] "CLIENT" "SETNAME" "secret"
1700000000.400300 [0 10.0.0.1:5000] "BLPOP" "l" "0"
1700000000.400400 [0 10.0.0.1:5000] "WATCH" "l"
1700000000.400500 [0 10.0.0.1:5000] "EXEC"
1700000000.400600 [0 10.0.0.1:5000] "MY.MODULE" "k"
this is no line
1700000000.400650 [0 10.0.0.1:5000] "SET" "k" "not " escaped"
1700000000.400700 [0 10.0.0.2:5000] "MULTI"
1700000001.000100 [0 10.0.0.1:5000] "PING"
`

func TestReadMonitor(t *testing.T) {
	r, err := ReadMonitor(strings.NewReader(monitorLog), ReplayOptions{KeyPrefix: "r:"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0s SET: SET slowpath:r:user:\"1\" a\x00b\r\n\\",
		"250ms GET: get slowpath:r:db3:user:1",
		"300.1ms LPUSH: LPUSH slowpath:r:l x",
		"300.1ms MULTI: MULTI; INCR slowpath:r:n; MGET slowpath:r:a slowpath:r:b; EXEC",
		"1s PING: PING",
	}
	if got := played(t, r, 1, 1); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := played(t, r, 1, 2); !strings.HasPrefix(got[4], "500ms ") || r.Length != time.Second {
		t.Errorf("twice as fast: %q of %v", got[4], r.Length)
	}
	if got := played(t, r, 1, 0); !strings.HasPrefix(got[4], "0s ") {
		t.Errorf("at once: %q", got[4])
	}
	// the first client is in the first stream, in its order
	if two := played(t, r, 3, 1); len(two) != 5 || !strings.Contains(two[2], "PING") {
		t.Errorf("in three streams: %q", two)
	}
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, fmt.Sprintf("%s %d", s.Command, s.Count))
	}
	slices.Sort(skipped)
	if want := "[BLPOP 1 CLIENT 1 EXEC 1 FLUSHALL 1 MULTI 1 SET 1 WATCH 1 others 1 others 1 others " +
		"1]"; fmt.Sprint(skipped) != want {
		t.Errorf("skipped %v, want %v", skipped, want)
	}
}

func TestReadMonitorOptions(t *testing.T) {
	r, err := ReadMonitor(strings.NewReader(monitorLog), ReplayOptions{KeepKeys: true, Dangerous: true})
	if err != nil {
		t.Fatal(err)
	}
	got := played(t, r, 1, 0)
	for _, want := range []string{"0s GET: get user:1", "0s FLUSHALL: FLUSHALL", "0s MY.MODULE: MY.MODULE k"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for what, log := range map[string]string{
		"empty": "OK\n", "not a log": "hello\nworld\n", "all dangerous": `1.000000 [0 a:1] "FLUSHALL"` + "\n",
	} {
		if _, err := ReadMonitor(strings.NewReader(log), ReplayOptions{}); !errors.Is(err, ErrUsage) ||
			!strings.Contains(err.Error(), "nothing to replay") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, log := range map[string]string{
		"too much":            strings.Repeat(`1.000000 [0 a:1] "PING"`+"\n", 10),
		"too much in a MULTI": `1.000000 [0 a:1] "MULTI"` + "\n" + strings.Repeat(`1.000000 [0 a:1] "PING"`+"\n", 10),
		"too much in several": strings.ReplaceAll(`1.000000 [0 X:1] "MULTI"#1.000000 [0 X:1] "PING"#`+
			`1.000000 [0 Y:1] "MULTI"#1.000000 [0 Y:1] "PING"#1.000000 [0 Y:1] "PING"#`, "#", "\n"),
	} {
		if _, err := ReadMonitor(strings.NewReader(log), ReplayOptions{MaxBytes: 60}); !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Scripts are left out however they are written; what is left keeps its times, its order and its clients.
func TestLeaveOutScripts(t *testing.T) {
	log := strings.Join([]string{
		`1.000000 [0 a:1] "eVaL" "(function(r) return r.call(\"flushall\") end)(redis)" "0"`,
		`1.100000 [0 a:1] "SET" "k" "v"`,
		`1.200000 [0 b:1] "MULTI"`, `1.200000 [0 b:1] "INCR" "n"`, `1.200000 [0 b:1] "fcall" "f" "1" "k"`,
		`1.200000 [0 b:1] "EXEC"`,
		`1.300000 [0 b:1] "GET" "k"`,
		`1.400000 [0 b:1] "EVALSHA_RO" "d3c21d0c2b9ca22f82737626a27bcaf5d288f99f" "0"`,
	}, "\n")
	r, err := ReadMonitor(strings.NewReader(log), ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.RunsScripts() || r.Requests() != 5 {
		t.Errorf("scripts: %v, of %d requests", r.RunsScripts(), r.Requests())
	}
	if err := r.LeaveOutScripts(); err != nil {
		t.Fatal(err)
	}
	want := []string{"100ms SET: SET slowpath:k v", "300ms GET: GET slowpath:k"}
	if got := played(t, r, 1, 1); !slices.Equal(got, want) || r.RunsScripts() || len(r.Ops) != 2 ||
		r.Length != 300*time.Millisecond || len(r.Skipped) != 3 {
		t.Errorf("left %q of %v, ops %v, skipped %v", got, r.Length, r.Ops, r.Skipped)
	}
	only, err := ReadMonitor(strings.NewReader(strings.Split(log, "\n")[0]), ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := only.LeaveOutScripts(); !errors.Is(err, ErrUsage) {
		t.Errorf("of a log of scripts: %v", err)
	}
}

func TestReplayDoesNotAllocate(t *testing.T) {
	r, err := ReadMonitor(strings.NewReader(strings.Repeat(`1.000000 [0 a:1] "GET" "x"`+"\n", 2000)), ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, buf := r.Streams(1, 0, 1)[0], make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(1000, func() { s.Due(); buf, _ = s.Next(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}

func TestReadRecording(t *testing.T) {
	rec := recording.New()
	add := func(source, op, hash string, args int, bytes int64, ms int64) {
		rec.Call(recording.Call{
			Source: source, Op: op, KeyHash: hash, ArgCount: args, RequestBytes: bytes,
			IntendedNs: ms * 1e6, Conn: "c",
		})
	}
	add(recording.SourceTap, "SET", "h1", 3, 1500, 30)
	add(recording.SourceTap, "GET", "h1", 2, 50, 10)
	add(recording.SourceProbe, "GET", "", 2, 50, 11)
	add(recording.SourceLoad, "MGET", "", 6, 200, 40)
	add(recording.SourceTap, "MSET", "", 5, 10_000, 50)
	add(recording.SourceTap, "CONFIG GET", "", 3, 10, 60)
	add(recording.SourceTap, "GET +", "", 2, 10, 61)
	rec.Index()
	r, err := ReadRecording(rec, ReplayOptions{Keys: Keys{High: 999}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Streams(1, 0, 1)[0]
	var keys []string
	for _, want := range []struct {
		op    string
		args  int
		bytes int
		due   time.Duration
	}{
		{"GET", 2, 0, 0},
		{"SET", 3, 1500, 20 * time.Millisecond},
		{"MGET", 6, 0, 30 * time.Millisecond},
		{"MSET", 5, 10_000, 40 * time.Millisecond},
	} {
		due, ok := s.Due()
		b, q := s.Next(nil)
		args := commandsOf(t, b)[0]
		if !ok || r.Ops[q.Op].Name != want.op || len(args) != want.args || due != want.due || want.bytes > 0 &&
			(len(b) < want.bytes-4 || len(b) > want.bytes) {
			t.Errorf("%s: %d arguments, %d bytes, due %v; want %+v", r.Ops[q.Op].Name, len(args), len(b), due, want)
		}
		keys = append(keys, args[1])
		for _, at := range keyPositions(args) {
			if !strings.HasPrefix(args[at], "slowpath:key:{") {
				t.Errorf("key %q", args[at])
			}
		}
	}
	if keys[0] != keys[1] {
		t.Errorf("one hash gave the keys %v", keys[:2])
	}
	if len(r.Notes) != 3 || !strings.Contains(r.Notes[2], "over all: 1") || r.Clients() != 2 ||
		!strings.Contains(r.Notes[0], "2 of 4") || len(r.Skipped) != 2 {
		t.Errorf("notes %q, skipped %v", r.Notes, r.Skipped)
	}
	if _, err := ReadRecording(recording.New(), ReplayOptions{}); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}

func FuzzReadMonitor(f *testing.F) {
	f.Add(monitorLog)
	f.Add(`1.000000 [0 a:1] "XREADGROUP" "GROUP" "g" "c" "STREAMS" "k" ">"`)
	f.Add(`1.000000 [0 a:1] "EVAL" "return 1" "2" "a" "b"`)
	f.Fuzz(func(t *testing.T, log string) {
		r, err := ReadMonitor(strings.NewReader(log), ReplayOptions{})
		if err != nil {
			if !errors.Is(err, ErrUsage) {
				t.Fatal(err)
			}
			return
		}
		last := time.Duration(0)
		for s := r.Streams(1, 0, 1)[0]; s.Remaining() > 0; {
			due, _ := s.Due()
			b, q := s.Next(nil)
			all := commandsOf(t, b)
			if len(all) != int(q.Replies) || due < last {
				t.Fatalf("%q: %d commands, %d replies, due %v after %v", log, len(all), q.Replies, due, last)
			}
			last = due
			for _, args := range all {
				if err := refuse(args, false); err != nil {
					t.Fatal(err)
				}
				for _, at := range keyPositions(args) {
					if !strings.HasPrefix(args[at], Prefix) {
						t.Fatalf("%q: key %q", log, args[at])
					}
				}
			}
		}
	})
}
