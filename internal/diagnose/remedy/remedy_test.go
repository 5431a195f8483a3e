package remedy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are the client libraries, with the versions that a row may name: major versions with their own rows, and
// versions that change a default. "other" is any library; hiredis and commons-pool2 are parts of client libraries, but
// have their own options; python, node and java are runtimes.
var known = map[string][]string{
	"go-redis": {"6", "7", "8", "9.22"}, "redigo": nil, "rueidis": nil, "jedis": nil, "lettuce": nil, "redisson": nil,
	"redis-py": {"6.0", "8.0"}, "node-redis": nil, "ioredis": nil, "phpredis": nil, "predis": nil,
	"stackexchange": nil, "hiredis": nil, "commons-pool2": nil, "other": nil, "python": nil, "node": nil, "java": nil,
	"ruby":  nil,
	"codis": {"3.2"}, "redis-rb": nil,
}

// topics are all of them, with the values that their texts are given.
var topics = map[Topic][]string{
	WarmPool: {"connections"}, OneDialAtATime: nil, KeepConnections: nil, SurviveFailover: nil, SplitCalls: nil,
	LeaveOutSetInfo: nil, BoundRetries: nil, RetryDefaults: nil, CacheHotKeys: nil, FetchMapLess: nil,
	FetchMapInBackground: nil, ReplyTimeout: nil, LargerPool: {"connections"}, PoolSizeOption: nil,
	SmallerPool: {"connections"}, KeepIdle: nil, LongerLifetime: nil, ReturnConnections: nil,
	LargerIdleLimit: {"connections"},
	TestIdleOnly:    nil, SpreadReconnects: nil, FollowMaster: nil, AvoidUnreadyNode: nil, OneClient: nil,
	CloseFirst: {"seconds", "milliseconds"}, LeaveSilentMaster: nil, LongerTimeout: nil, UnblockEventLoop: nil,
	MoveSlots: nil, LongerScans: nil,
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// TestTable: every row is well formed, each library and version in it is known, no row is there twice, and each topic
// has rows.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 6 || f[0] == "" || f[1] == "" || (f[3] == "") != (f[4] == "") ||
			strings.TrimSpace(f[3]+f[5]) == "" {
			t.Errorf("remedies.tsv:%d: not topic, library, version, option, its value and text: %q", i+1, line)
			continue
		}
		values, is := topics[Topic(f[0])]
		if !is {
			t.Errorf("remedies.tsv:%d: no topic %q", i+1, f[0])
		}
		versions, is := known[f[1]]
		if !is || f[2] != "" && !slices.Contains(versions, f[2]) {
			t.Errorf("remedies.tsv:%d: library %s, version %q: not known", i+1, f[1], f[2])
		}
		if key := strings.Join(f[:3], " "); seen[key] {
			t.Errorf("remedies.tsv:%d: %s is there twice", i+1, key)
		} else {
			seen[key] = true
		}
		for _, m := range placeholder.FindAllStringSubmatch(f[4]+f[5], -1) {
			if !slices.Contains(values, m[1]) {
				t.Errorf("remedies.tsv:%d: nothing fills in %s", i+1, m[0])
			}
		}
	}
	for topic := range topics {
		if len(table[topic]) == 0 {
			t.Errorf("%s has no rows", topic)
		}
	}
}

func TestFill(t *testing.T) {
	if got := fill("PoolSize: {connections}, {other}", Values{"connections": 40}); got != "PoolSize: 40, {other}" {
		t.Error(got)
	}
}

func TestStepOf(t *testing.T) {
	if s, ok := StepOf(PoolSizeOption, "redigo"); !ok || !strings.HasPrefix(s.Sentence(), "redigo: MaxActive") {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := StepOf(PoolSizeOption, "nobody's"); ok {
		t.Error("a library that does not exist has an option")
	}
}
