package manyhosts_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
)

// python has ClickHouse's engine.
var python = func() string {
	cache, _ := os.UserCacheDir() // without one, nothing matches
	return filepath.Join(cache, "slowpath", "chdb", "bin", "python")
}()

// startEngine starts ClickHouse's engine until the end of a test, and gives its address as a source.
func startEngine(t *testing.T) (source string) {
	t.Helper()
	c := exec.Command(python, "_engine/engine.py", t.TempDir())
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q %v", line, err)
	}
	return "clickhouse+http://127.0.0.1:" + port + "/slowpath"
}

// copied are the statements that give a database the rows of a folder.
func copied(t *testing.T, f *manyhosts.Folder) (out []string) {
	t.Helper()
	for _, table := range []struct{ view, into, columns string }{
		{"host", "host_row (tenant, at, cluster, host, name, value)", "'' tenant, 1 at, cluster, host, name, value"},
		{
			"call", "call_row (cluster, host, trace, side, at, ns, whose, op, node, client, client_ip, seq, caller, " +
				"request_bytes, reply_bytes, error, p, state, culprit)",
			"cluster, host, trace, side, at_ns, ns, whose, op, node, client, client_ip, seq, caller, request_bytes, " +
				"reply_bytes, error, p, state, culprit",
		},
		{
			"minute", "minute_row (cluster, host, at, node, whose, side, server, calls, slow, failed, threshold_ns, " +
				"max_ns, complete, scale, first, counts)",
			"cluster, host, at_ns, node, whose, side, server, calls, slow, failed, threshold_ns, max_ns, complete, " +
				"3 scale, 0 first, buckets",
		},
		{
			"incident", "incident_row (cluster, host, id, at, ns, state, verdict, cause, summary, slow, failed, nodes)",
			"cluster, host, id, at_ns, ns, state, verdict, cause, summary, slow, failed, nodes",
		},
		{
			"finding", "finding_row (cluster, host, incident, rank, at, cause, because, share, confidence, grade, " +
				"slow, title, evidence, fix, culprit)",
			"cluster, host, incident, rank, at_ns, cause, because, share, confidence, grade, slow, title, evidence, " +
				"fix, culprit",
		},
		{
			"change", "change_row (cluster, host, at, within_ns, kind, node, text, who)",
			"cluster, host, at_ns, within_ns, kind, node, text, who",
		},
		{
			"edge", "edge_row (cluster, host, at, ns, caller, unit, container, pod, library, node, calls, slow, " +
				"lost_ns)",
			"cluster, host, at_ns, ns, caller, unit, container, pod, library, node, calls, slow, lost_ns",
		},
	} {
		rows, err := f.Query(t.Context(), "SELECT "+table.columns+" FROM "+table.view, manyhosts.Filter{})
		if err != nil {
			t.Fatal(table.view, err)
		}
		var all []string
		for _, row := range rows.Values {
			var values []string
			for i, v := range row {
				values = append(values, inClickHouse(t, table.view, rows.Columns[i], v))
			}
			all = append(all, "("+strings.Join(values, ", ")+")")
		}
		for some := range slices.Chunk(all, 500) {
			out = append(out, "INSERT INTO "+table.into+" VALUES "+strings.Join(some, ", "))
		}
	}
	return out
}

func inClickHouse(t *testing.T, view, column string, v any) string {
	quoted := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	text, isText := v.(string)
	switch {
	case column == "at_ns" && view == "minute":
		return fmt.Sprintf("toDateTime(%d)", v.(int64)/1e9)
	case column == "at_ns":
		return fmt.Sprintf("fromUnixTimestamp64Nano(%d)", v)
	case column == "nodes":
		return "JSONExtract(" + quoted(text) + ", 'Array(String)')"
	case column == "buckets": // from the lowest bucket that there can be
		var buckets [][2]int64
		if err := json.Unmarshal([]byte(text), &buckets); err != nil {
			t.Fatal(err)
		}
		const lowest, most = -300, 400
		counts := make([]int64, most)
		for _, b := range buckets {
			counts[b[0]-lowest] += b[1]
		}
		return strings.ReplaceAll(fmt.Sprint(counts), " ", ", ")
	case column == "first":
		return "-300"
	case isText:
		return quoted(text)
	}
	return fmt.Sprint(v)
}

// TestClickHouse: the same rows give the same answers in a folder and in ClickHouse, and the schema is applied once.
func TestClickHouse(t *testing.T) {
	needs.Real(t, needs.File("ClickHouse's engine", python, "scripts/chdb installs it"))
	dir := filepath.Join(t.TempDir(), "recordings")
	for i := range 12 {
		node := fmt.Sprintf("10.0.0.%d:6379", 8+i/6)
		host := fmt.Sprint("web-", i)
		record(t, filepath.Join(dir, host+".slowpath"), host, recording.Client, node,
			fmt.Sprintf("10.0.1.%d:4000", i+1), i < 6, 0)
	}
	record(t, filepath.Join(dir, "redis-1.slowpath"), "redis-1", recording.Server, "127.0.0.1:6379", "10.0.1.1:4000",
		true, time.Hour)
	for _, id := range corpus.Some() {
		if err := corpus.Unpack(id, filepath.Join(dir, id+".slowpath")); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := open(t, dir)
	source := startEngine(t)
	var said []string
	for range 2 {
		err := manyhosts.ApplySchema(t.Context(), source, manyhosts.Login{}, "",
			func(line string) { said = append(said, line) })
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"001_tables is applied", "002_views is applied", "001_tables is there", "002_views is there"}
	if !slices.Equal(said, want) {
		t.Error(said)
	}
	c, err := manyhosts.OpenClickHouse(t.Context(), source, manyhosts.Login{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	for _, table := range []string{"call", "minute", "hour", "host", "incident", "finding", "change", "edge"} {
		// The recordings become older than what is kept.
		if err := c.Exec(t.Context(), "ALTER TABLE "+table+"_row REMOVE TTL"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what is sent again collapses
		for _, s := range copied(t, f) {
			if err := c.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	from, to, err := f.Span(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	filter := manyhosts.Filter{From: from, To: to, Limit: 200, Step: 24 * time.Hour}
	judged := asked(t, f, manyhosts.Questions[6], filter).Rows
	filter.Host, filter.Incident = judged.Text(judged.Values[0], "host"), judged.Text(judged.Values[0], "id")
	for _, q := range append(slices.Clone(manyhosts.Questions), manyhosts.Findings) {
		inFolder, inClickHouse := asked(t, f, q, filter), asked(t, c, q, filter)
		if len(inFolder.Rows.Values) == 0 || !reflect.DeepEqual(inFolder.Shared, inClickHouse.Shared) {
			t.Errorf("%s: %d rows, %v, %v", q.Name, len(inFolder.Rows.Values), inFolder.Shared, inClickHouse.Shared)
		}
		a, b := comparable(inFolder.Rows), comparable(inClickHouse.Rows)
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Errorf("%s: in the folder\n%s\nin ClickHouse\n%s", q.Name, a[min(i, len(a)-1)], b[min(i, len(b)-1)])
				break
			}
		}
	}
	ofBank, err := manyhosts.OpenClickHouse(t.Context(), source, manyhosts.Login{})
	if err != nil {
		t.Fatal(err)
	}
	defer ofBank.Close()
	ofBank.OfTenant("bank")
	for _, q := range manyhosts.Questions {
		if a := asked(t, ofBank, q, filter); len(a.Rows.Values) > 0 {
			t.Errorf("%s tells a tenant what others have: %v", q.Name, a.Rows.Values)
		}
	}
	err = c.Exec(t.Context(), fmt.Sprintf("INSERT INTO minute_row (tenant, host, at, node, whose, side, calls, scale) "+
		"VALUES ('bank', 'b', toDateTime(%d), '10.1.1.1:6379', 'users', 'client', 9, 3)", from.Unix()+60))
	if err != nil {
		t.Fatal(err)
	}
	worst, _ := manyhosts.QuestionOf("worst")
	byMinutes := asked(t, c, worst, filter).Rows
	for _, s := range []string{"SYSTEM REFRESH VIEW hour_in", "SYSTEM WAIT VIEW hour_in"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	byHours := asked(t, c, worst, filter).Rows // what has an end before this hour
	for i, row := range byMinutes.Values {
		for _, column := range []string{"node", "calls", "slow", "p99_ns", "cause"} {
			if a, b := byMinutes.Shown(row, column), byHours.Shown(byHours.Values[i], column); a != b {
				t.Errorf("%s of row %d: by minutes %s, by hours %s", column, i, a, b)
			}
		}
	}
	if a := asked(t, ofBank, worst, filter); len(a.Rows.Values) != 1 || a.Rows.Int(a.Rows.Values[0], "calls") != 9 {
		t.Errorf("a tenant sees of its own %v", a.Rows.Values)
	}
	for _, s := range []string{ // a server that is watched by its loopback address, and that one host alone has
		"INSERT INTO address_row (host, ip, at) VALUES ('far-1', '10.9.9.9', now())",
		"INSERT INTO minute_row (host, at, node, calls, scale) VALUES ('far-1', now(), 'far-1 127.0.0.1:6390', 1, 3)",
		"INSERT INTO minute_row (host, at, node, calls, scale) VALUES ('far-2', now(), '10.9.9.9:6390', 1, 3)",
		"INSERT INTO minute_row (host, at, node, calls, scale, first, counts) SELECT 'far-2', " +
			"toStartOfHour(now()) - 60 * n, '10.9.9.9:6390', 7, 3, -20, [0, 5, 2] " +
			"FROM (SELECT number + 1 AS n FROM numbers(60))",
		"SYSTEM REFRESH VIEW node_name_in", "SYSTEM WAIT VIEW node_name_in",
		"SYSTEM REFRESH VIEW hour_in", "SYSTEM WAIT VIEW hour_in", // hours are made again
		"SYSTEM REFRESH VIEW hour_in", "SYSTEM WAIT VIEW hour_in",
	} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	names, err := c.Query(t.Context(), "SELECT DISTINCT node FROM minute WHERE host IN ('far-1', 'far-2')",
		manyhosts.Filter{})
	if err != nil || len(names.Values) != 1 || names.Text(names.Values[0], "node") != "10.9.9.9:6390" {
		t.Errorf("%v %v", names.Values, err)
	}
	hours, err := c.Query(t.Context(), "SELECT calls, minutes, toString(buckets) AS b, toString(counts) AS c "+
		"FROM hour_row FINAL WHERE host = 'far-2' AND minutes > 1", manyhosts.Filter{})
	if err != nil || len(hours.Values) != 1 || hours.Int(hours.Values[0], "calls") != 420 ||
		hours.Int(hours.Values[0], "minutes") != 60 || hours.Text(hours.Values[0], "b") != "[-19,-18]" ||
		hours.Text(hours.Values[0], "c") != "[300,120]" {
		t.Errorf("%v %v", hours.Values, err)
	}
	_, err = manyhosts.OpenClickHouse(t.Context(), "clickhouse://u:secret@127.0.0.1:1/x", manyhosts.Login{})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func asked(t *testing.T, s manyhosts.Source, q manyhosts.Question, f manyhosts.Filter) manyhosts.Answer {
	t.Helper()
	a, err := manyhosts.Ask(t.Context(), s, q, f)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// comparable are rows as texts: no value and 0 are the same, and so are numbers that differ by their last digits.
func comparable(r manyhosts.Rows) (out []string) {
	for _, row := range r.Values {
		var cells []string
		for i, v := range row {
			text := fmt.Sprint(v)
			switch n := v.(type) {
			case nil:
				text = "0"
			case float64:
				text = fmt.Sprintf("%.6g", n)
			case int64:
				text = fmt.Sprintf("%.6g", float64(n))
				if n > 1e15 {
					text = fmt.Sprint(n)
				}
			}
			cells = append(cells, r.Columns[i]+"="+text)
		}
		out = append(out, strings.Join(cells, " "))
	}
	return out
}
