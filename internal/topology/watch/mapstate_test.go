package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
)

// view makes what the node `of` says of the cluster; a line is "ID ROLE EPOCH SLOTS…", where ROLE is master, slave:ID,
// or either with ",fail".
func view(t *testing.T, of string, lines ...string) cluster.Map {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		f := strings.Fields(line)
		role, rest, failed := strings.Cut(f[1], ",")
		role, primary, isReplica := strings.Cut(role, ":")
		if !isReplica {
			primary = "-"
		}
		flags := role
		if failed {
			flags += "," + rest
		}
		if f[0] == of {
			flags = "myself," + flags
		}
		fmt.Fprintf(&text, "%s 10.0.0.%d:6379@16379 %s %s 0 0 %s connected %s\n", f[0], f[0][0]-'a'+1, flags, primary,
			f[2], strings.Join(f[3:], " "))
	}
	m, err := cluster.ParseNodes(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var base = []string{"a master 1 0-5460", "b master 2 5461-10922", "c master 3 10923-16383", "d slave:a 1"}

// with is the base map with some lines replaced, by their first word; a line of one word takes the node out.
func with(lines ...string) []string {
	out := slices.Clone(base)
	for _, line := range lines {
		id, _, more := strings.Cut(line, " ")
		i := slices.IndexFunc(out, func(l string) bool { return strings.HasPrefix(l, id+" ") })
		switch {
		case !more:
			out = slices.Delete(out, i, i+1)
		case i < 0:
			out = append(out, line)
		default:
			out[i] = line
		}
	}
	return out
}

type viewOf struct {
	of    string
	lines []string
}

func TestMapState(t *testing.T) {
	moved := with("a master 1 1-5460", "b master 4 0 5461-10922")
	promoted := with("a master,fail 1", "d master 5 0-5460")
	failed := with("a master,fail 1 0-5460")
	trade := with("a master 6 1-5460 5461", "b master 7 0 5462-10922")
	fresh := with("e master 0")
	for _, test := range []struct {
		name  string
		views []viewOf
		want  []string
	}{
		{"nothing new", []viewOf{{"a", base}, {"d", base}}, nil},
		{
			"a move, then late views",
			[]viewOf{{"b", moved}, {"c", base}, {"d", base}, {"a", moved}, {"c", moved}},
			[]string{"slot-moved 0 10.0.0.1:6379 10.0.0.2:6379 b"},
		},
		{
			"a second slot, without a new epoch",
			[]viewOf{
				{"b", moved},
				{"c", with("a master 1 2-5460", "b master 4 0-1 5461-10922")},
				{"d", moved},
			},
			[]string{"slot-moved 0 10.0.0.1:6379 10.0.0.2:6379 b", "slot-moved 1 10.0.0.1:6379 10.0.0.2:6379 b"},
		},
		{
			"and back",
			[]viewOf{{"b", moved}, {"a", with("a master 5 0-5460", "b master 4 5461-10922")}, {"c", moved}},
			[]string{"slot-moved 0 10.0.0.1:6379 10.0.0.2:6379 b", "slot-moved 0 10.0.0.2:6379 10.0.0.1:6379 a"},
		},
		{"known to others before the receiver", []viewOf{
			{"c", with("a master 1 0-5461", "b master 2 5462-10922")},
			{"b", base},
		}, nil},
		{
			"two nodes trade",
			[]viewOf{{"c", trade}, {"a", trade}, {"b", trade}},
			[]string{"slot-moved 0 10.0.0.1:6379 10.0.0.2:6379 b", "slot-moved 5461 10.0.0.2:6379 10.0.0.1:6379 a"},
		},
		{
			"given up, and taken without an epoch",
			[]viewOf{
				{"c", with("c master 3 10924-16383")}, {"a", with("c master 3 10924-16383", "a master 1 0-5460 10923")},
			},
			[]string{"slot-moved 10923 10.0.0.3:6379  ", "slot-moved 10923  10.0.0.1:6379 a"},
		},
		{
			"given up, while others do not know yet",
			[]viewOf{{"c", with("c master 3 10924-16383")}, {"b", base}},
			[]string{"slot-moved 10923 10.0.0.3:6379  "},
		},
		{
			"taken by who has the smaller epoch, the former owner agrees",
			[]viewOf{
				{"a", with("a master 1 0-5460 10923", "c master 3 10924-16383")},
				{"c", with("a master 1 0-5460 10923",
					"c master 3 10924-16383")},
				{"b", base},
			},
			[]string{"slot-moved 10923 10.0.0.3:6379 10.0.0.1:6379 a"},
		},
		{
			"a failover",
			[]viewOf{{"b", failed}, {"c", failed}, {"d", promoted}, {"b", failed}, {"c", promoted}},
			[]string{"failover-started 0-5460 10.0.0.1:6379  a", "failover-ended 0-5460 10.0.0.1:6379 10.0.0.4:6379 d"},
		},
		{
			"a master without slots becomes a replica of the one that got its last",
			[]viewOf{
				{"a", with("a master 6 1-5460", "b master 7 0 5461-10922")},
				{"b", with("a slave:b 8", "b master 8 0-10922")},
			},
			[]string{
				"slot-moved 0 10.0.0.1:6379 10.0.0.2:6379 b",
				"slot-moved 1-5460 10.0.0.1:6379 10.0.0.2:6379 b",
			},
		},
		{
			"a failover by command, and late views",
			[]viewOf{
				{"d", with("a slave:d 5", "d master 5 0-5460")},
				{"b", base},
			},
			[]string{"failover-started 0-5460 10.0.0.1:6379  a", "failover-ended 0-5460 10.0.0.1:6379 10.0.0.4:6379 d"},
		},
		{
			"and back, by who was not seen to be a replica",
			[]viewOf{
				{"d", promoted},
				{"b", with("a master 6 0-5460", "d master 5")},
				{"d", with("a master 6 0-5460", "d slave:a 6")},
			},
			[]string{
				"failover-started 0-5460 10.0.0.1:6379  a", "failover-ended 0-5460 10.0.0.1:6379 10.0.0.4:6379 d",
				"failover-started 0-5460 10.0.0.4:6379  d", "failover-ended 0-5460 10.0.0.4:6379 10.0.0.1:6379 a",
			},
		},
		{
			"all slots move to an empty node",
			[]viewOf{
				{"b", fresh},
				{"b", with("a master 1", "e master 6 0-5460")},
				{"c", with("a master 1", "e master 6 0-5460")},
				{"a", with("a master 1", "e master 6 0-5460")},
			},
			[]string{"node-joined   10.0.0.5:6379 e", "slot-moved 0-5460 10.0.0.1:6379 10.0.0.5:6379 e"},
		},
		{
			"and no node can be reached",
			[]viewOf{
				{"b", fresh},
				{"b", with("a master 1", "e master 6 0-5460")},
				{"c", base},
				{"c", base},
				{"c", base},
			},
			[]string{"node-joined   10.0.0.5:6379 e", "slot-moved 0-5460 10.0.0.1:6379 10.0.0.5:6379 e"},
		},
		{
			"it comes back by itself",
			[]viewOf{{"b", failed}, {"c", failed}, {"b", base}, {"c", base}, {"d", base}},
			[]string{"failover-started 0-5460 10.0.0.1:6379  a", "failover-ended 0-5460 10.0.0.1:6379 10.0.0.1:6379 a"},
		},
		{"only suspected", []viewOf{{"b", with("a master,fail? 1 0-5460")}}, nil},
		{"a replica fails", []viewOf{{"b", with("d slave:a,fail 1")}}, nil},
		{
			"a node joins",
			[]viewOf{{"a", with("e handshake 0")}, {"a", fresh}, {"b", base}, {"c", fresh}},
			[]string{"node-joined   10.0.0.5:6379 e"},
		},
		{
			"a node leaves",
			[]viewOf{
				{"a", fresh},
				{"b", fresh},
				{"c", fresh},
				{"d", fresh},
				{"a", base},
				{"b", base},
				{"c", base},
				{"d", fresh},
				{"d", base},
			},
			[]string{"node-joined   10.0.0.5:6379 e", "node-left  10.0.0.5:6379  e"},
		},
		{
			"and comes again",
			[]viewOf{{"a", fresh}, {"b", fresh}, {"a", base}, {"b", base}, {"a", fresh}},
			[]string{"node-joined   10.0.0.5:6379 e", "node-left  10.0.0.5:6379  e", "node-joined   10.0.0.5:6379 e"},
		},
		{"a view without its own node", []viewOf{{"", moved}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, now := newMapState(), time.Unix(1e9, 0)
			for _, of := range []string{"a", "b", "c", "d"} {
				now = now.Add(time.Second)
				st.load(view(t, of, base...), now)
			}
			var got []string
			for _, v := range test.views {
				now = now.Add(time.Second)
				for _, e := range st.merge(view(t, v.of, v.lines...), now).events {
					if !e.Time.Equal(now) {
						t.Errorf("%v at %v", e, e.Time)
					}
					got = append(got, fmt.Sprintf("%s %s %s %s %s", e.Kind, cluster.FormatRanges(e.Slots), e.From, e.To,
						e.Node))
				}
			}
			for i := range test.want {
				test.want[i] = strings.TrimRight(test.want[i], " ")
			}
			for i := range got {
				got[i] = strings.TrimRight(got[i], " ")
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			checkMapState(t, st)
		})
	}
}

// checkMapState checks the invariants of a map.
func checkMapState(t *testing.T, st *mapState) {
	t.Helper()
	count := map[*member]int{}
	for _, owner := range st.owners {
		count[owner]++
	}
	for id, m := range st.members {
		if m.id != id || m.slots != count[m] || !st.everKnown[id] {
			t.Errorf("%+v has %d slots", m, count[m])
		}
		delete(count, m)
	}
	delete(count, nil)
	if len(count) > 0 {
		t.Errorf("slots of %d nodes that are none", len(count))
	}
}

// FuzzMerge feeds views of any content, since servers are not trusted.
func FuzzMerge(f *testing.F) {
	one := "a 10.0.0.1:1@2 myself,master - 0 0 1 connected 0-100\nb 10.0.0.2:1@2 slave a 0 0 1 connected\n"
	f.Add(one, "a 10.0.0.1:1@2 slave b 0 0 3 connected\nb 10.0.0.2:1@2 myself,master - 0 0 3 connected 0-100\n", one)
	f.Add(one, "c 10.0.0.3:1@2 myself,master,fail - 0 0 9 connected 5\n", "a :0 myself,noaddr,master - 0 0 0 "+
		"disconnected 7 7\n")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		st := newMapState()
		for i, text := range []string{first, second, third, second, first} {
			m, err := cluster.ParseNodes(text)
			if err != nil {
				continue
			}
			for _, e := range st.merge(m, time.Unix(int64(i), 0)).events {
				if _, err := e.MarshalJSON(); err != nil || e.String() == "" {
					t.Errorf("%+v: %v", e, err)
				}
			}
			checkMapState(t, st)
		}
	})
}

func TestEventJSON(t *testing.T) {
	e := Event{Time: time.Unix(1e9, 123456789), Kind: SlotMoved, Slots: []cluster.Range{
		{From: 1, To: 2},
		{From: 9, To: 9},
	}, From: "a:1", To: "b:2", Node: "b"}
	got, err := e.MarshalJSON()
	want := `{"time":"2001-09-09T01:46:40.123456789Z","kind":"slot-moved","slots":"1-2,9",` +
		`"from":"a:1","to":"b:2","node":"b"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
