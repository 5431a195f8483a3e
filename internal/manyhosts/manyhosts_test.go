package manyhosts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// begin is when the recordings of the tests begin, in nanoseconds since the Unix epoch.
const begin = int64(1_800_000_000e9)

// record writes the recording of a host: calls of a process to a node, one of 10 slow where it is, seen at one end. The
// clock of the host is ahead by offset.
func record(t *testing.T, path, host, side, node, client string, slow bool, offset time.Duration) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(ns int64) int64 { return begin + int64(offset) + ns }
	w.SetMeta(recording.MetaHost, host)
	if side == recording.Server {
		w.SetMeta(recording.MetaAddresses, `["10.0.0.9","fe80::1"]`)
	}
	w.SetMeta(recording.MetaStart, fmt.Sprint(at(0)))
	w.SetMeta(recording.MetaSlow, "5ms")
	for key, value := range recording.NodeMetas([]string{node}, map[string]recording.NodeServer{
		node: {Server: "redis 7.2.4", Kind: "standalone"},
	}) {
		w.SetMeta(key, value)
	}
	const calls = 1000
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for i := range int64(calls) {
		ns := int64(100e3)
		if slow && i%10 == 0 {
			ns = 40e6
			c := recording.Call{
				Source: recording.SourceTap, Conn: client, Op: "GET", Node: node, Side: side, Seq: uint32(1000 + i),
				RequestBytes: 30, IntendedNs: at(i * 10e6), StartNs: at(i * 10e6), EndNs: at(i*10e6 + ns),
			}
			if side == recording.Client {
				c.Client = "app[7]"
				c.EndNs += 1e6 // the network
			}
			w.Call(c, recording.Segment{
				Actor: "server", State: "busy", FromNs: c.IntendedNs, ToNs: c.EndNs, Culprit: "KEYS",
			})
		}
		_ = h.RecordValue(ns)
	}
	hdr, err := recording.EncodeHistogram(h)
	if err != nil {
		t.Fatal(err)
	}
	w.Histogram(recording.Histogram{
		Second: at(0)/1e9 + 5, Source: recording.SourceTap, Node: node, Op: side + " GET", HDR: hdr,
	})
	if side == recording.Client {
		w.Snapshot(recording.Snapshot{
			TimeNs: at(0), Source: recording.SourceTap, Subject: recording.ConnPrefix + client,
			Name: recording.SnapshotEnds, Body: recording.Detail(recording.ConnEnds{Node: node, PID: 7, Comm: "app"}),
		})
		w.ConnUse(client, recording.ConnUse{TimeNs: at(10e9), Calls: calls})
	}
	w.SetMeta(recording.MetaEnd, fmt.Sprint(at(10e9)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) (*manyhosts.Folder, []string) {
	t.Helper()
	var said []string
	f, err := manyhosts.OpenFolder(t.Context(), manyhosts.FolderOptions{
		Paths: []string{dir}, Index: dir + ".fleet", Version: "test",
		Say:  func(line string) { said = append(said, line) },
		Show: func(string, ...any) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, said
}

func ask(t *testing.T, f *manyhosts.Folder, name string) (manyhosts.Answer, manyhosts.Filter) {
	t.Helper()
	q, ok := manyhosts.QuestionOf(name)
	from, to, err := f.Span(t.Context())
	filter := manyhosts.Filter{From: from, To: to, Limit: 1000, Step: time.Minute}
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	a, err := manyhosts.Ask(t.Context(), f, q, filter)
	if err != nil {
		t.Fatal(err)
	}
	return a, filter
}

// TestTwoEnds: a call that a caller's and a server's host saw is one, a node has the name that its callers use, and
// another cluster with the same addresses is another.
func TestTwoEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	for _, cluster := range []string{"shop", "mail"} {
		at := filepath.Join(dir, "cluster="+cluster)
		record(t, filepath.Join(at, "host=web-1", "1.slowpath"), "", recording.Client, "10.0.0.9:6379",
			"10.0.0.1:4000", cluster == "shop", 0)
		record(t, filepath.Join(at, "host=redis-1", "1.slowpath"), "", recording.Server, "127.0.0.1:6379",
			"10.0.0.1:4000", cluster == "shop", 20*time.Second)
	}
	f, said := open(t, dir)
	if len(said) > 0 {
		t.Error(said)
	}
	calls, _ := ask(t, f, "calls")
	if len(calls.Rows.Values) != 100 {
		t.Fatalf("%d calls", len(calls.Rows.Values))
	}
	for _, row := range calls.Rows.Values {
		r := calls.Rows
		if r.Text(row, "node") != "10.0.0.9:6379" || r.Text(row, "host") != "web-1" ||
			r.Int(row, "caller_ns") != 41e6 || r.Int(row, "server_ns") != 40e6 ||
			r.Int(row, "joined_share") != 1 || r.Text(row, "caller") != "app[7]" {
			t.Fatalf("%v: %v", r.Columns, row)
		}
	}
	worst, _ := ask(t, f, "worst")
	r := worst.Rows
	if len(r.Values) != 2 || r.Text(r.Values[0], "cluster") != "shop" || r.Int(r.Values[0], "calls") != 1000 ||
		r.Int(r.Values[0], "slow") != 100 || r.Int(r.Values[1], "slow") != 0 ||
		r.Int(r.Values[0], "p99_ns") < 36e6 || r.Int(r.Values[0], "p99_ns") > 44e6 {
		t.Errorf("%v: %v", r.Columns, r.Values)
	}
	who, _ := ask(t, f, "who")
	if r := who.Rows; len(r.Values) != 1 || r.Text(r.Values[0], "caller") != "app[7]" ||
		r.Text(r.Values[0], "host") != "web-1" || r.Int(r.Values[0], "calls") != 1000 ||
		r.Int(r.Values[0], "slow") != 100 {
		t.Errorf("%v: %v", r.Columns, r.Values)
	}
	paths, left, err := f.Recordings(t.Context(), "web-1/1")
	of := func(path string) string { return strings.TrimPrefix(path, dir+"/cluster=") }
	if err != nil || len(left) != 0 || len(paths) != 3 || of(paths[0]) != "shop/host=web-1/1.slowpath" ||
		of(paths[1]) != "mail/host=web-1/1.slowpath" || of(paths[2]) != "shop/host=redis-1/1.slowpath" {
		t.Errorf("%v %v %v", paths, left, err)
	}
}

// TestTranslatedAddresses: behind an address translation the ends of a call have no address in common, and are one all
// the same. How far clocks are apart is told by the calls of one trace.
func TestTranslatedAddresses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	record(t, filepath.Join(dir, "web-1.slowpath"), "web-1", recording.Client, "10.0.0.9:6379", "10.0.0.1:4000", true,
		0)
	record(t, filepath.Join(dir, "redis-1.slowpath"), "redis-1", recording.Server, "127.0.0.1:6379", "192.0.2.1:5000",
		true, time.Second/2)
	f, _ := open(t, dir)
	calls, _ := ask(t, f, "calls")
	if len(calls.Rows.Values) != 100 {
		t.Fatalf("%d calls", len(calls.Rows.Values))
	}
	for _, row := range calls.Rows.Values {
		if r := calls.Rows; r.Int(row, "caller_ns") != 41e6 || r.Int(row, "server_ns") != 40e6 ||
			r.Int(row, "joined_share") != 1 || r.Text(row, "host") != "web-1" {
			t.Fatalf("%v: %v", r.Columns, row)
		}
	}
	const apart = 7 * time.Hour
	dir = filepath.Join(t.TempDir(), "recordings")
	record(t, filepath.Join(dir, "web-1.slowpath"), "web-1", recording.Client, "10.0.0.9:6379", "10.0.0.1:4000", true,
		0)
	record(t, filepath.Join(dir, "redis-1.slowpath"), "redis-1", recording.Server, "127.0.0.1:6379", "10.0.0.1:4000",
		true, apart)
	f, _ = open(t, dir)
	clocks, _ := ask(t, f, "clocks")
	r := clocks.Rows
	if len(r.Values) != 1 || r.Text(r.Values[0], "caller_host") != "web-1" || r.Int(r.Values[0], "calls") != 100 ||
		r.Int(r.Values[0], "least_ns") != int64(apart)-1e6 || r.Int(r.Values[0], "most_ns") != int64(apart) {
		t.Errorf("%v: %v", r.Columns, r.Values)
	}
}

// TestShared: what the hosts with slow calls have in common is said, and of a fleet in which all are alike nothing.
func TestShared(t *testing.T) {
	for _, bad := range []int{0, 8, 40} {
		dir := filepath.Join(t.TempDir(), "recordings")
		for i := range 40 {
			node := "10.0.0.9:6379"
			if i >= 8 {
				node = "10.0.0.8:6379"
			}
			host := fmt.Sprint("web-", i)
			record(t, filepath.Join(dir, host+".slowpath"), host, recording.Client, node,
				fmt.Sprintf("10.0.1.%d:4000", i+1), i < bad, 0)
		}
		f, _ := open(t, dir)
		why, _ := ask(t, f, "why")
		var texts []string
		for _, s := range why.Shared {
			texts = append(texts, fmt.Sprintf("%s %s %s %d/%d %d/%d", s.Kind, s.Name, s.Value, s.Suffering,
				s.AllSuffering, s.Others, s.AllOthers))
		}
		got, want := strings.Join(texts, "; "), ""
		if bad == 8 {
			want = "caller node 10.0.0.9:6379 8/8 0/32"
		}
		if got != want {
			t.Errorf("%d of 40 hosts have slow calls: %q", bad, got)
		}
	}
}

// TestQuestions: each question has an answer as text and as JSON, of recordings of all kinds, and the same once more.
func TestQuestions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range corpus.Some() {
		if err := corpus.Unpack(id, filepath.Join(dir, id+".slowpath")); err != nil {
			t.Fatal(err)
		}
	}
	var before bytes.Buffer
	for round := range 2 {
		f, _ := open(t, dir)
		var all bytes.Buffer
		for _, q := range manyhosts.Questions {
			a, filter := ask(t, f, q.Name)
			var doc manyhosts.Document
			var body bytes.Buffer
			err := errors.Join(a.JSON(&body, filter), json.Unmarshal(body.Bytes(), &doc),
				a.Print(&all, filter, layout.Style{Width: 80}))
			if err != nil || doc.Question != q.Name || len(doc.Rows) != len(a.Rows.Values) ||
				len(doc.Rows) == 0 && q.Name != "clocks" { // they are of one host each
				t.Errorf("%s: %d rows, %v", q.Name, len(doc.Rows), err)
			}
		}
		_ = f.Close()
		if round == 1 && !bytes.Equal(all.Bytes(), before.Bytes()) {
			t.Error("the answers differ once more")
		}
		before = all
	}
}

// TestChangedFolder: recordings that are new, gone, cut or none are noticed, and what can be read is asked.
func TestChangedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	first, second := filepath.Join(dir, "a.slowpath"), filepath.Join(dir, "b.slowpath")
	record(t, first, "a", recording.Client, "10.0.0.9:6379", "10.0.0.1:4000", true, 0)
	f, _ := open(t, dir)
	if a, _ := ask(t, f, "incidents"); len(a.Rows.Values) != 1 {
		t.Errorf("%v", a.Rows.Values)
	}
	_ = f.Close()
	record(t, second, "b", recording.Client, "10.0.0.9:6379", "10.0.0.2:4000", true, 0)
	body, err := os.ReadFile(second)
	if err == nil {
		err = errors.Join(os.Remove(first), os.WriteFile(filepath.Join(dir, "cut.slowpath"), body[:len(body)/3], 0o600),
			os.WriteFile(filepath.Join(dir, "none.slowpath"), []byte("no recording"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	f, said := open(t, dir)
	if !strings.Contains(strings.Join(said, "\n"), "none.slowpath is left out") {
		t.Error(said)
	}
	a, _ := ask(t, f, "incidents")
	for _, row := range a.Rows.Values {
		if host := a.Rows.Text(row, "host"); host != "b" && host != "cut" {
			t.Errorf("%v", row)
		}
	}
	if err := os.Symlink(dir, dir+"-named"); err != nil {
		t.Fatal(err)
	}
	named, _ := open(t, dir+"-named") // a link that the user names
	if through, _ := ask(t, named, "incidents"); len(through.Rows.Values) != len(a.Rows.Values) {
		t.Errorf("%v", through.Rows.Values)
	}
	err = errors.Join(os.WriteFile(dir+".other", []byte("somebody's"), 0o600), os.Symlink(dir+".fleet", dir+".link"))
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{dir + ".other", dir + ".link"} {
		_, err = manyhosts.OpenFolder(t.Context(), manyhosts.FolderOptions{
			Paths: []string{dir}, Index: index, Say: func(string) {}, Show: func(string, ...any) {},
		})
		if err == nil {
			t.Errorf("%s was taken for an index", index)
		}
	}
	if body, err := os.ReadFile(dir + ".other"); err != nil || string(body) != "somebody's" {
		t.Errorf("%q %v", body, err)
	}
}
