package pasted_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/source/pasted"
)

// slowlog are two entries as redis-cli of Redis 3 and later prints them, the second without a client.
const slowlog = ` 9) 1) (integer) 12849
    2) (integer) 1652345021
    3) (integer) 1503422
    4) 1) "SMEMBERS"
       2) "online:users"
       3) "... (12 more arguments)"
    5) "10.1.7.8:51234"
    6) ""
10) 1) (integer) 12848
    2) (integer) 1652344921
    3) (integer) 1403422
    4) 1) "SMEMBERS"
       2) "o\"nli\nne"
`

const raw = "12849\n1652345021\n1503422\nSMEMBERS\nonline:users\n10.1.7.8:51234\n\n" +
	"12848\n1652344921\n1403422\nSMEMBERS\nonline:users\n"

// unindented is a text whose lines have lost the spaces before them.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func read(t testing.TB, texts ...string) (verdict.Diagnosis, error) {
	t.Helper()
	var files []pasted.File
	for _, text := range texts {
		files = append(files, pasted.File{Name: "x", Text: []byte(text)})
	}
	rec := recording.New()
	if _, err := pasted.Read(files, "test", rec); err != nil {
		return verdict.Diagnosis{}, err
	}
	return verdict.Diagnose(rec, "test"), nil
}

// TestForms: a reply is found in each form in which people paste it.
func TestForms(t *testing.T) {
	const smembers = "SLOWLOG: SMEMBERS 2 times, up to 1.5 s, 2.91 s together, the last at 2022-05-12 08:43:41 UTC"
	quoted := "> " + strings.ReplaceAll(slowlog, "\n", "\n> ")
	for name, c := range map[string]struct {
		text, say string
	}{
		"terminal":      {slowlog, smembers},
		"COMMANDLOG":    {"valkey> COMMANDLOG GET 2 slow\n" + slowlog, smembers},
		"with a prompt": {"127.0.0.1:6379[3]> slowlog get 2\n" + slowlog, smembers},
		"in Markdown":   {"It hangs:\n\n```\n$ redis-cli -h a slowlog get\n" + slowlog + "```\nHelp!\n", smembers},
		"quoted":        {quoted, smembers},
		"unindented":    {unindented(slowlog), smembers},
		"Windows":       {strings.ReplaceAll(slowlog, "\n", "\r\n"), smembers},
		"coloured":      {strings.ReplaceAll(slowlog, "(integer)", "\x1b[33m(integer)\x1b[0m"), smembers},
		"of a web page": {strings.ReplaceAll(slowlog, " ", "\u00a0"), smembers},
		"raw":           {raw, smembers},
		"twice":         {slowlog + "\nand again\n" + slowlog, smembers},
		"cut":           {slowlog[:200], "SLOWLOG: SMEMBERS once, up to 1.5 s"},
		"LATENCY LATEST": {
			"1) 1) \"fork\"\n   2) (integer) 1652345021\n   3) (integer) 30\n   4) (integer) 91\n",
			"LATENCY: fork in 1 second, up to 30 ms",
		},
		"LATENCY LATEST raw": {
			"> latency latest\nredis> latency latest\nfork\n1652345021\n30\n91\n",
			"LATENCY: fork in 1 second, up to 30 ms",
		},
		"LATENCY HISTORY": {
			"redis> LATENCY HISTORY fork\n1) 1) (integer) 1652345021\n   2) (integer) 30\n" +
				"2) 1) (integer) 1652345023\n   2) (integer) 47\n", "LATENCY: fork in 2 seconds, up to 47 ms",
		},
		"LATENCY DOCTOR": {
			"1. command: 5 latency spikes (average 300ms, mean deviation 120ms, period 73.40 sec). Worst all time " +
				"event 500ms.\n", "LATENCY DOCTOR: 1. command: 5 latency spikes",
		},
		"CLIENT LIST": {
			"id=3 addr=10.0.0.7:5 fd=8 name= age=9 idle=0 flags=O db=0 omem=0 cmd=monitor\n" +
				"id=4 addr=10.0.0.8:5 fd=9 name= age=9 idle=0 flags=N db=0 omem=70000 cmd=lrange\n",
			"2 clients, from 10.0.0.7, 10.0.0.8\n" +
				"CLIENT LIST: MONITOR is under way, from 10.0.0.7\n" +
				"CLIENT LIST: the largest output buffer has 70 kB, of 10.0.0.8:5 (LRANGE)",
		},
		"INFO": {"some text: here\n# Stats\nevicted_keys:7\n", "evicted: 7 keys (evicted_keys)"},
		"INFO, a section after the other": {
			"redis> info memory\nused_memory:1000\nredis> info stats\nevicted_keys:7\n",
			"evicted: 7 keys (evicted_keys)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := read(t, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if said := texts(d); !strings.Contains(said, c.say) {
				t.Errorf("want %q, got\n%s", c.say, said)
			}
			if d.Verdict == verdict.Healthy || !strings.Contains(d.Summary, "no calls") {
				t.Errorf("%s: %s", d.Verdict, d.Summary)
			}
		})
	}
}

func texts(d verdict.Diagnosis) string {
	var out []string
	for _, e := range d.Told {
		out = append(out, e.Text)
	}
	return strings.Join(out, "\n")
}

// TestRealTexts: of a Redis 7.0, by a script that made the terminal print them, in one file or more.
func TestRealTexts(t *testing.T) {
	load := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	terminal, raw := load("redis-7.0-terminal.txt"), load("redis-7.0-raw.txt")
	for name, files := range map[string][]string{
		"terminal": {terminal}, "raw": {raw}, "both": {terminal, raw}, "in one file": {raw + terminal},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := read(t, files...)
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != verdict.Findings || d.Findings[0].Cause != "slow-command" || len(d.Target.Nodes) != 1 ||
				d.Target.Server != "redis 7.0.15" || !strings.Contains(d.Summary, "KEYS holds the event loop") {
				t.Errorf("%s %v %+v: %s", d.Verdict, d.Findings, d.Target, d.Summary)
			}
			said := texts(d)
			if between := "40 500 keys of these in the last 2s"; strings.Contains(said, between) != (len(files) > 1 ||
				name == "in one file") {
				t.Errorf("%q: %s", between, said)
			}
		})
	}
}

// TestServersApart: texts are of as many servers as they have run ids; what has none is of the one before it, or of the
// only one.
func TestServersApart(t *testing.T) {
	one := "run_id:" + strings.Repeat("1", 40) + "\ntcp_port:6379\nuptime_in_seconds:100\nevicted_keys:5\n"
	two := "run_id:" + strings.Repeat("2", 40) + "\ntcp_port:6380\nuptime_in_seconds:100\nevicted_keys:6\n"
	for name, c := range map[string]struct {
		files []string
		nodes string
	}{
		"one":          {[]string{one, slowlog}, "HOST:6379"},
		"before it":    {[]string{slowlog, one}, "HOST:6379"},
		"two":          {[]string{one + two}, "HOST:6379 HOST2:6380"},
		"in two files": {[]string{one, two}, "HOST:6379 HOST2:6380"},
		"with prompts": {
			[]string{"a:1> info\n" + one + "b:1> info\n" + two + "a:1> slowlog get\n" + slowlog}, "a:1 b:1",
		},
		"the same, twice":    {[]string{one, strings.Replace(one, ":100", ":160", 1)}, "HOST:6379"},
		"IPv6":               {[]string{"[::1]:6379> slowlog get\n" + slowlog}, "[::1]:6379"},
		"a Unix socket":      {[]string{"redis /run/redis.sock> slowlog get\n" + slowlog}, "HOST:PORT"},
		"no information":     {[]string{slowlog}, "HOST:PORT"},
		"redis-cli -h and p": {[]string{"$ redis-cli -h db7 -p 7000 slowlog get\n" + slowlog}, "db7:7000"},
	} {
		d, err := read(t, c.files...)
		if got := strings.Join(d.Target.Nodes, " "); err != nil || got != c.nodes {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.nodes)
		}
	}
}

// TestPastedNumbersAndNames: numbers that cannot be, and names that a shell would read, get into no time and no
// command.
func TestPastedNumbersAndNames(t *testing.T) {
	for _, text := range []string{
		"uptime_in_seconds:1e300\nused_memory:-1e300\nserver_time_usec:9e99\n",
		"uptime_in_seconds:-5\nserver_time_usec:-1\nlatest_fork_usec:1e31\nevicted_keys:1e30\n",
		"$(reboot):1> info\nused_memory:1\n", "redis-cli -h $(reboot) -p 1 info\nused_memory:1\n",
		"redis-cli -h a;reboot info\nused_memory:1\n",
		strings.ReplaceAll(slowlog, "1652345021", "8589934591"), strings.ReplaceAll(slowlog, "1652345021", "5"),
	} {
		d, err := read(t, text)
		if err != nil || d.Window.Seconds < 0 || d.Window.Start.Unix() < 0 ||
			strings.Contains(d.Target.Address, "reboot") {
			t.Errorf("%q: %v, %v, %+v", text, err, d.Window, d.Target)
		}
		if said := texts(d); strings.Contains(said, "-9") {
			t.Errorf("%q: %s", text, said)
		}
		for _, b := range d.BlindSpots {
			if strings.Contains(b.Enable, "reboot") {
				t.Errorf("%q: %s", text, b.Enable)
			}
		}
	}
}

// TestMissing: what the texts do not have is said, with the command that prints it.
func TestMissing(t *testing.T) {
	d, err := read(t, slowlog)
	if err != nil {
		t.Fatal(err)
	}
	var next []string
	for _, b := range d.BlindSpots {
		next = append(next, b.Enable)
	}
	said := strings.Join(next, "\n")
	for _, want := range []string{"INFO all", "LATENCY LATEST", "CLIENT LIST", "CONFIG GET", "slowpath doctor"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in %s", want, said)
		}
	}
	if strings.Contains(said, "SLOWLOG") {
		t.Errorf("SLOWLOG is there: %s", said)
	}
}

// TestQuietServer: a single command that took a little longer than slowlog-log-slower-than is no finding.
func TestQuietServer(t *testing.T) {
	d, err := read(t, strings.ReplaceAll(slowlog[:strings.Index(slowlog, "10)")], "1503422", "12757"))
	if err != nil || d.Verdict != verdict.Inconclusive {
		t.Errorf("%s %s %v", d.Verdict, d.Summary, err)
	}
}

// TestNoUserData: of commands only names and sizes are kept.
func TestNoUserData(t *testing.T) {
	rec := recording.New()
	_, err := pasted.Read([]pasted.File{{Name: "x", Text: []byte(slowlog + raw)}}, "test", rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.Events {
		if strings.Contains(e.Detail, "online") {
			t.Error(e.Detail)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, text := range []string{
		"127.0.0.1:6379> commandlog get 10 large-reply\n" + slowlog,
		"", "\n", "hello: world\nredis is slow\n", "\x00\xff\x1b[2J", "1) 2) 3)\n", "1) \"a\"\n",
	} {
		if _, err := read(t, text); !errors.Is(err, pasted.ErrNothing) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzPasted: whatever is pasted, it is judged, or nothing is found.
func FuzzPasted(f *testing.F) {
	f.Add("127.0.0.1:6379> slowlog get\n" + slowlog)
	f.Add(raw)
	f.Add("redis> latency history fork\n1) 1) (integer) 1652345021\n   2) (integer) 30\n")
	f.Add("id=3 addr=1.2.3.4:5 fd=8 name= age=9 idle=0 flags=N db=0 omem=0 cmd=get\n")
	f.Add("run_id:1\nuptime_in_seconds:9\nserver_time_usec:1652345021000000\ncmdstat_get:calls=1,usec=2\n")
	f.Add("redis> config get maxmemory\n1# \"maxmemory\" => \"0\"\n1) \"hz\"\n2) \"10\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := read(t, text); err != nil && !errors.Is(err, pasted.ErrNothing) {
			t.Fatal(err)
		}
	})
}
