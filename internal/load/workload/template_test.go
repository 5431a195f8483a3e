package workload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
)

// first gives the commands of the first request of a workload of one template, with its values cut short.
func first(t *testing.T, o Options) string {
	t.Helper()
	b, q := compiled(t, o).Stream(1, 0, 1).Next(nil)
	var lines []string
	all := commandsOf(t, b)
	if len(all) != int(q.Replies) {
		t.Errorf("%d commands and %d replies", len(all), q.Replies)
	}
	for _, args := range all {
		for i, a := range args {
			if strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || r > '~' }) {
				args[i] = fmt.Sprintf("<%d bytes>", len(a))
			}
		}
		lines = append(lines, strings.Join(args, " "))
	}
	return strings.Join(lines, "; ")
}

func TestTemplates(t *testing.T) {
	at := Keys{Low: 1234567, High: 1234567}
	for _, tt := range []struct {
		name    string
		options Options
		want    string
	}{
		{"prefix", Options{Commands: []string{"GET key:{key}"}, Keys: at}, "GET slowpath:key:000001234567"},
		{
			"prefix is there",
			Options{Commands: []string{"GET slowpath:key:{key}"}, Keys: at},
			"GET slowpath:key:000001234567",
		},
		{
			"own prefix",
			Options{Commands: []string{"GET {key}"}, Keys: at, KeyPrefix: "run7:"},
			"GET slowpath:run7:000001234567",
		},
		{
			"own prefix is there",
			Options{Commands: []string{"GET slowpath:run7:{key}"}, Keys: at, KeyPrefix: "run7:"},
			"GET slowpath:run7:000001234567",
		},
		{"literal key", Options{Commands: []string{"GET mine"}}, "GET slowpath:mine"},
		{"empty key", Options{Commands: []string{"GET ''"}}, "GET slowpath:"},
		{"value", Options{Commands: []string{"SET k {value}"}, Sizes: FixedSize(100)}, "SET slowpath:k <100 bytes>"},
		{
			"value in text",
			Options{Commands: []string{`SET k '{{"v":"{value}"}}'`}, Sizes: FixedSize(10)},
			"SET slowpath:k <18 bytes>",
		},
		{"quotes", Options{Commands: []string{`SET k "a b\x41\"" NX`}}, `SET slowpath:k a bA" NX`},
		{
			"number not as a key",
			Options{Commands: []string{"SET key:{key} of-{same}"}, Keys: at},
			"SET slowpath:key:000001234567 of-000001234567",
		},
		{
			"several keys, round the end of a tag",
			Options{
				Commands: []string{"MGET {key} {key} {key}"},
				Keys:     Keys{Low: 198, High: 199, Dist: Sequential},
			},
			"MGET slowpath:{0000000001}98 slowpath:{0000000001}99 slowpath:{0000000001}98",
		},
		{
			"group at its border",
			Options{Commands: []string{"MGET {key} {key}"}, Keys: Keys{Low: 199, High: 199}},
			"MGET slowpath:{0000000001}99 slowpath:{0000000001}99",
		},
		{
			"times",
			Options{Commands: []string{"DEL k{key:2}"}, Keys: Keys{Low: 5, High: 5}},
			"DEL slowpath:k{0000000000}05 slowpath:k{0000000000}05",
		},
		{
			"times with values",
			Options{Commands: []string{"MSET k{key:2} x"}, Keys: Keys{Low: 5, High: 5}},
			"MSET slowpath:k{0000000000}05 x slowpath:k{0000000000}05 x",
		},
		{
			"same",
			Options{Commands: []string{"MULTI; SET key:{key} x; INCR ctr:{same}; EXEC"}, Keys: at},
			"MULTI; SET slowpath:key:{0000012345}67 x; INCR slowpath:ctr:{0000012345}67; EXEC",
		},
		{
			"one number in a block",
			Options{Commands: []string{"MULTI; INCR n:{key}; EXEC"}, Keys: at},
			"MULTI; INCR slowpath:n:000001234567; EXEC",
		},
		{
			"tag",
			Options{Commands: []string{"RENAME {tag}:a {tag}:{key}"}, Keys: at, Cluster: true},
			"RENAME slowpath:{0000012345}:a slowpath:{0000012345}:{0000012345}67",
		},
		{
			"tag of one",
			Options{Commands: []string{"GET {tag}:{key}"}, Keys: at},
			"GET slowpath:{000001234567}:000001234567",
		},
		{"random", Options{Commands: []string{"INCRBY k {rand:7-7}"}}, "INCRBY slowpath:k 7"},
		{
			"random in key",
			Options{Commands: []string{"INCRBY k{rand:12-12}:{key} 5"}, Keys: at},
			"INCRBY slowpath:k12:000001234567 5",
		},
		{"unique", Options{Commands: []string{"LPUSH k {unique}"}}, "LPUSH slowpath:k 0"},
		{
			"channel",
			Options{Commands: []string{"PUBLISH ch:{key} hello"}, Keys: at},
			"PUBLISH slowpath:ch:000001234567 hello",
		},
		{"no key", Options{Commands: []string{"ECHO hi"}}, "ECHO hi"},
		{"expiry", Options{Commands: []string{"SET k v"}, Expire: time.Minute}, "SET slowpath:k v PX 60000"},
		{"own expiry", Options{Commands: []string{"SET k v EX 5"}, Expire: time.Minute}, "SET slowpath:k v EX 5"},
		{
			"named expiry",
			Options{Commands: []string{"setex"}, Keys: at, Sizes: FixedSize(200), Expire: time.Minute},
			"SETEX slowpath:key:000001234567 60 <200 bytes>",
		},
		{
			"script",
			Options{Commands: []string{"EVALSHA 'return redis.call(\"GET\", KEYS[1])' 1 {key}"}, Keys: at},
			"EVALSHA d1ad8397c172dc0a63e271f0c4c4250ca8d5d1fb 1 slowpath:000001234567",
		},
		{"store", Options{Commands: []string{"SORT k BY nosort GET # STORE d"}}, "SORT slowpath:k BY nosort GET # " +
			"STORE slowpath:d"},
		{
			"numkeys",
			Options{Commands: []string{"ZUNIONSTORE d 2 a b WEIGHTS 1 2"}},
			"ZUNIONSTORE slowpath:d 2 slowpath:a slowpath:b WEIGHTS 1 2",
		},
		{
			"unknown, allowed",
			Options{Commands: []string{"MY.CMD x {key} y"}, Keys: at, Dangerous: true},
			"MY.CMD x slowpath:000001234567 y",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := first(t, tt.options); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What somebody else wrote is known to be a script, however it is spelled; the commands with a name are ours.
func TestRunsScripts(t *testing.T) {
	for template, want := range map[string]bool{
		"get": false, "eval": false, "evalsha": false, "SET a b": false, "EVAL 'return 1' 0": true,
		"evalSHA d3c21d0c2b9ca22f82737626a27bcaf5d288f99f 0": true, "EVAL_RO 'return 1' 0": true, "FCALL f 0": true,
		"fcall_ro f 0": true, "MULTI; PING; EVALSHA_RO 'return 1' 0; EXEC": true,
	} {
		w, err := Compile(Options{Commands: []string{"get", template}})
		if err != nil {
			t.Fatal(err)
		}
		if w.RunsScripts() != want {
			t.Errorf("%s: %v", template, w.RunsScripts())
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		template string
		want     error
		text     string
	}{
		{"FLUSHALL", ErrDangerous, "--dangerous"},
		{"flushdb", ErrDangerous, ""},
		{"CONFIG SET a b", ErrDangerous, ""},
		{"SHUTDOWN", ErrDangerous, ""},
		{"DEBUG SLEEP 1", ErrDangerous, ""},
		{"KEYS *", ErrDangerous, ""},
		{"SAVE", ErrDangerous, ""},
		{"BGSAVE", ErrDangerous, ""},
		{"BGREWRITEAOF", ErrDangerous, ""},
		{"REPLICAOF a 1", ErrDangerous, ""},
		{"SLAVEOF a 1", ErrDangerous, ""},
		{"CLUSTER FAILOVER", ErrDangerous, ""},
		{"ACL SETUSER x", ErrDangerous, ""},
		{"SCRIPT FLUSH", ErrDangerous, ""},
		{"FUNCTION FLUSH", ErrDangerous, ""},
		{
			"MIGRATE h 1 k 0 1", ErrDangerous,
			"",
		},
		{"SWAPDB 0 1", ErrDangerous, ""},
		{"CLIENT KILL x", ErrDangerous, ""},
		{"CLIENT PAUSE 1", ErrDangerous, ""},
		{"MODULE LOAD x", ErrDangerous, ""},
		{"FUNCTION LOAD x", ErrDangerous, ""},
		{"script load x", ErrDangerous, ""},
		{"MULTI; SET a b; FLUSHALL; EXEC", ErrDangerous, ""},
		{"NOT.KNOWN a", ErrDangerous, "which of its arguments"},
		{"MOVE k 1", ErrDangerous, ""},
		{"SUBSCRIBE c", ErrState, ""},
		{"MONITOR", ErrState, ""},
		{"CLIENT REPLY OFF", ErrState, ""},
		{"HELLO 3", ErrState, ""},
		{"AUTH x", ErrState, ""},
		{"SELECT 1", ErrState, ""},
		{"QUIT", ErrState, ""},
		{"RESET", ErrState, ""},
		{
			"CLIENT TRACKING ON", ErrState,
			"",
		},
		{"MULTI; SET a b", ErrUsage, "EXEC"},
		{"EXEC", ErrUsage, "EXEC"},
		{"WATCH k", ErrUsage, "WATCH"},
		{"MULTI; MULTI; EXEC", ErrUsage, "MULTI"},
		{"MULTI; WATCH k; EXEC", ErrUsage, "WATCH"},
		{"GET {kye}", ErrUsage, "{kye}"},
		{"GET {key", ErrUsage, "placeholder"},
		{"GET a}", ErrUsage, "}"},
		{"GET {same}", ErrUsage, "{same}"},
		{"GET {tag}", ErrUsage, "{tag}"},
		{"GET {rand:5-1}", ErrUsage, ""},
		{"GET {rand:x}", ErrUsage, ""},
		{"GET {key:0}", ErrUsage, ""},
		{"GET {key:10001}", ErrUsage, ""},
		{"GET {value:3}", ErrUsage, ""},
		{"{key} a", ErrDangerous, ""},
		{"", ErrUsage, "empty"},
		{"GET a;; GET b", ErrUsage, "empty"},
		{"SET a 'b", ErrUsage, "quotes"},
		{"SET a \"b\"c", ErrUsage, "quotes"},
		{"EVAL 'return 1' {rand:1-1} k", ErrUsage, "which arguments"},
		{"XREAD a 0", ErrUsage, "which arguments"},
		{"APPEND", ErrUsage, "write its arguments"},
	} {
		_, err := Compile(Options{Commands: []string{tt.template}})
		if !errors.Is(err, tt.want) || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), tt.text) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.template, err)
		}
		if _, err := Compile(Options{Commands: []string{tt.template}, Dangerous: true}); tt.want == ErrState &&
			!errors.Is(err, ErrState) {
			t.Errorf("%s, dangerous: %v", tt.template, err)
		}
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		text    string
	}{
		{"ratios", Options{Commands: []string{"get", "set"}, Ratios: []float64{1}}, "1 ratios for 2 commands"},
		{"negative", Options{Ratios: []float64{-1}, Commands: []string{"get"}}, "ratio -1"},
		{"all zero", Options{Ratios: []float64{0}, Commands: []string{"get"}}, "all ratios are 0"},
		{"types", Options{Commands: []string{"SET k:{key} v", "LPUSH k:{key} v"}}, "WRONGTYPE"},
		{"slots", Options{Commands: []string{"MSET a 1 b 2"}, Cluster: true}, "{tag}"},
		{
			"slots in a block",
			Options{Commands: []string{"MULTI; INCR total; INCR k:{key}; EXEC"}, Cluster: true},
			"{tag}",
		},
		{"expiry of nothing", Options{Expire: time.Second}, "EXPIRE"},
		{"short expiry", Options{Commands: []string{"set"}, Expire: time.Microsecond}, "milliseconds"},
		{"prefix", Options{KeyPrefix: "{a}"}, "braces"},
		{"keys", Options{Keys: Keys{Low: 5, High: 4}}, "range"},
		{"verify", Options{Commands: []string{"set"}, Verify: true}, "nothing to verify"},
		{"verify what is not told by its key", Options{
			Commands: []string{"GET k:{key}", "APPEND k:{key} x"},
			Verify:   true,
		}, "APPEND"},
	} {
		if _, err := Compile(tt.options); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The slot of a request is that of its first key, and of all its other keys.
func TestKeysOfARequestShareASlot(t *testing.T) {
	for _, template := range []string{
		"GET key:{key}", "MGET {key} a:{key}", "MSET x{key:100} y", "DEL x{key:1000}",
		"MULTI; SET {tag}:t 1; INCR {key}; EXEC",
		"GET {tag}{key}", "SET {rand:0-99999}:{key} {value}", "SET a{{b}}{key} v", "EVAL 'return 1' 2 {key} {key}",
		"SPUBLISH ch{key} x", "SET fixed{unique} 1", "GET x{{}}{key}",
	} {
		w := compiled(t, Options{
			Commands: []string{template}, Keys: Keys{Low: 90, High: 123_456_789_012},
			Sizes: FixedSize(4),
		})
		s := w.Stream(3, 0, 1)
		slots := map[int16]bool{}
		for range 300 {
			b, r := s.Next(nil)
			slots[r.Slot] = true
			for i, args := range commandsOf(t, b) {
				for _, at := range w.requests[0].keys[i] {
					if got := int16(cluster.Slot([]byte(args[at]))); got != r.Slot {
						t.Fatalf("%s: %s is in slot %d, said %d", template, args[at], got, r.Slot)
					}
				}
			}
		}
		if len(slots) < 200 && !strings.Contains(template, "{{b}}") {
			t.Errorf("%s: %d slots in 300 requests", template, len(slots))
		}
	}
}

// Whatever is drawn, a request is the commands of its template, complete, with keys under the prefix only.
func TestEveryRequestIsAsMeant(t *testing.T) {
	templates := []string{
		"MULTI; SET key:{key} {value}; INCR ctr:{same}; EXEC", "ZADD z:{key} {rand:0-1000000} " +
			"m:{rand:0-9}", "MSET {key:7} {value}",
		"XADD s:{key} MAXLEN ~ 10 * f {value} g {unique}", "SET a:{rand:0-99}:{key} 'x{value}y{rand:5-500}'",
	}
	for name := range named {
		templates = append(templates, name)
	}
	for _, template := range templates {
		w := compiled(t, Options{Commands: []string{template}, Keys: Keys{Low: 95, High: 305}, Sizes: Sizes{
			low:  0,
			high: 2000,
		}, KeyPrefix: "p:"})
		s := w.Stream(11, 2, 3)
		for range 200 {
			b, r := s.Next(nil)
			all := commandsOf(t, b)
			want := w.requests[r.Op]
			if len(all) != int(r.Replies) || len(all) != len(want.commands) {
				t.Fatalf("%s: %d commands, %d replies", template, len(all), r.Replies)
			}
			for i, args := range all {
				if len(args) != len(want.commands[i]) || args[0] != want.commands[i][0].text() {
					t.Fatalf("%s: %q", template, args)
				}
				for _, at := range keyPositions(args) {
					if !strings.HasPrefix(args[at], "slowpath:p:") {
						t.Fatalf("%s: key %q", template, args[at])
					}
				}
			}
		}
	}
}

func TestRatios(t *testing.T) {
	w := compiled(t, Options{
		Commands: []string{"get", "set", "ping"}, Ratios: []float64{9, 0.5, 0.5},
		Keys: Keys{High: 99}, Sizes: FixedSize(3),
	})
	counts, s := [3]int{}, w.Stream(1, 0, 1)
	const n = 100_000
	for range n {
		_, r := s.Next(nil)
		counts[r.Op]++
	}
	for i, want := range []float64{0.9, 0.05, 0.05} {
		if got := float64(counts[i]) / n; got < want-0.005 || got > want+0.005 { // seven standard deviations
			t.Errorf("op %d: %v of the requests, want %v", i, got, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"GET key:{key}", "MULTI; SET {key} {value}; EXEC", `SET a "\x00{{" {rand:1-2}`,
		"MSET {key:10} {value}", "EVAL 'return {1}' 1 {tag}{key}", "XREAD STREAMS a 0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if len(template) > 1000 || strings.Contains(template, ":1000") {
			return // templates of ten thousand keys are right, but slow to fuzz
		}
		w, err := Compile(Options{Commands: []string{template}, Keys: Keys{High: 999}, Sizes: FixedSize(5)})
		if err != nil {
			if !errors.Is(err, ErrUsage) {
				t.Fatal(err)
			}
			return
		}
		b, r := w.Stream(1, 0, 1).Next(nil)
		all := commandsOf(t, b)
		if len(all) != int(r.Replies) && w.Ops[r.Op].Name != "" {
			t.Fatalf("%q: %d commands, %d replies", template, len(all), r.Replies)
		}
		for _, args := range all {
			if args[0] == "" {
				t.Fatalf("%q: no command", template)
			}
			for _, at := range keyPositions(args) {
				if !strings.HasPrefix(args[at], Prefix) {
					t.Fatalf("%q: key %q", template, args[at])
				}
			}
		}
	})
}
