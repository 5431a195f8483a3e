package incidents_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
)

var at = time.Date(2026, 11, 24, 3, 12, 7, 0, time.UTC)

const judged = `{"schema":"slowpath.diagnosis/v1","verdict":"findings","summary":"Too little CPU.",
"populations":[{"name":"users","slow_calls":812},{"name":"probe","slow_calls":3,"failed_calls":2}],
"target":{"nodes":["10.0.0.5:6379"]},"callers":[{"name":"shop","slow_calls":7},{"name":"reports"}],
"latency":{"slow_calls":815},"findings":[{"cause":"server-cfs-throttled"},{"cause":"other"}]}`

func open(t testing.TB, dir string, l incidents.Limits) *incidents.Store {
	t.Helper()
	s, err := incidents.Open(foldertest.Open(t, dir), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func begin(t testing.TB, s *incidents.Store, start time.Time) incidents.Incident {
	t.Helper()
	in, err := s.Begin("12 slow calls in a second", "127.0.0.1:6379", start)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestLifeOfAnIncident: from its begin to its verdict, and as another agent finds it.
func TestLifeOfAnIncident(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	in := begin(t, s, at)
	if in.ID != "20261124T031207Z-1" || in.State != incidents.StateWatching ||
		begin(t, s, at).ID != "20261124T031207Z-2" {
		t.Errorf("it is %+v", in)
	}
	if err := os.WriteFile(filepath.Join(dir, in.ID, incidents.RecordingFile), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	in.State, in.End = incidents.StateJudging, at.Add(time.Minute)
	if err := errors.Join(s.Update(in), s.Finish(in.ID, []byte(judged))); err != nil {
		t.Fatal(err)
	}
	want := incidents.Incident{
		ID: in.ID, Start: at, End: at.Add(time.Minute), Cause: "server-cfs-throttled", Summary: "Too little CPU.",
		SlowCalls: 812, FailedCalls: 2, Verdict: "findings", State: incidents.StateJudged,
		Trigger: "12 slow calls in a second", Target: "127.0.0.1:6379", RecordingBytes: 1000,
		Nodes: []string{"10.0.0.5:6379"}, Callers: []string{"shop"}, OtherCauses: []string{"other"},
	}
	for _, s := range []*incidents.Store{s, open(t, dir, incidents.Limits{MaxAge: 1 << 62})} {
		got, ok := s.Get(in.ID)
		if want.Changed.IsZero() {
			want.Changed = got.Changed // of the first store; the second one reads it
		}
		if !ok || !got.Changed.After(in.Changed) || !reflect.DeepEqual(got, want) {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
		for _, text := range []string{"10.0.0.5", "SHOP", "cfs", "other"} {
			if found := s.List(incidents.Query{Text: text}); len(found) != 1 {
				t.Errorf("%q finds %+v", text, found)
			}
		}
		if d, err := s.Diagnosis(in.ID); err != nil || string(d) != judged {
			t.Errorf("its diagnosis: %v %s", err, d)
		}
	}
	for _, id := range []string{"", "..", "../x", "20261124T031207Z-9", "20261124T031207Z-1/..", "marks.json"} {
		_, err := s.OpenFile(id, incidents.RecordingFile)
		if _, err2 := s.Diagnosis(id); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err2, fs.ErrNotExist) {
			t.Errorf("%q: %v, %v", id, err, err2)
		}
	}
	if err := s.Finish(in.ID, []byte("{}")); err == nil {
		t.Error("no diagnosis is an error")
	}
}

// TestKilledAgent: what an agent was working on is judged if its verdict was there, and has failed else. Its recording
// is kept.
func TestKilledAgent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	first, second, third := begin(t, s, at), begin(t, s, at.Add(time.Hour)), begin(t, s, at.Add(2*time.Hour))
	third.State, third.End = incidents.StateJudging, at.Add(2*time.Hour+time.Minute)
	if err := s.Update(third); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ id, name, text string }{
		{first.ID, "recording.slowpath", "r"},
		{second.ID, "diagnosis.json", judged},
		{second.ID, ".incident.json.part", "{"},
	} {
		if err := os.WriteFile(filepath.Join(dir, f.id, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".gone-20200101T000000Z-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	in, _ := s.Get(first.ID)
	if in.State != incidents.StateFailed || !strings.Contains(in.Error, "slowpath doctor") || in.RecordingBytes != 1 ||
		in.End.IsZero() || !in.CutOff || !strings.Contains(in.Error, "it was cut off") {
		t.Errorf("%+v", in)
	}
	const cutOff = "Too little CPU. It was cut off: slowpath ended while it went on, and its end is not known."
	if in, _ := s.Get(second.ID); in.State != incidents.StateJudged || in.Cause != "server-cfs-throttled" ||
		!in.CutOff || in.Summary != cutOff {
		t.Errorf("%+v", in)
	}
	if in, _ := s.Get(third.ID); in.CutOff || in.State != incidents.StateFailed {
		t.Errorf("it had ended: %+v", in)
	}
	if len(s.Notes()) != 3 {
		t.Errorf("said %q", s.Notes())
	}
	if _, err := os.Stat(filepath.Join(dir, ".gone-20200101T000000Z-1")); err == nil {
		t.Error("a removal that was cut short is not finished")
	}
	if err := s.Finish(first.ID, []byte(judged)); err != nil { // it may be judged again
		t.Error(err)
	}
	for range 2 {
		if in, _ := s.Get(first.ID); in.Summary != cutOff {
			t.Errorf("judged again, it is said to be %q", in.Summary)
		}
		s = open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	}
}

func TestRetentionOfIncidents(t *testing.T) {
	now := time.Now()
	ids := func(s *incidents.Store) (out []string) {
		for _, in := range s.List(incidents.Query{}) {
			out = append(out, in.Trigger)
		}
		return out
	}
	finished := func(s *incidents.Store, name string, start time.Time, bytes int, verdict string) {
		in, err := s.Begin(name, "", start)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Folder(in.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		if err := os.WriteFile(kept.Path(incidents.RecordingFile), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		in.End = start
		text := `{"schema":"slowpath.diagnosis/v1","verdict":"` + verdict + `"}`
		if err := errors.Join(s.Update(in), s.Finish(in.ID, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		l    incidents.Limits
		want string
	}{
		"count":   {incidents.Limits{MaxCount: 3}, "e d watched"}, // the one that is watched counts, and stays
		"bytes":   {incidents.Limits{MaxBytes: 25_000}, "e d watched"},
		"age":     {incidents.Limits{MaxAge: 150 * time.Hour}, "e d c watched"},
		"healthy": {incidents.Limits{MaxHealthyAge: time.Hour}, "e d c a watched"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, c.l)
			begin := func(name string, hours int, verdict string) {
				finished(s, name, now.Add(-time.Duration(hours)*time.Hour), 10_000, verdict)
			}
			if _, err := s.Begin("watched", "", now.Add(-500*time.Hour)); err != nil {
				t.Fatal(err)
			}
			begin("a", 400, "findings")
			begin("b", 300, "healthy")
			begin("c", 100, "findings")
			begin("d", 2, "findings")
			begin("e", 0, "healthy")
			if got := strings.Join(ids(s), " "); got != c.want {
				t.Errorf("left are %s, want %s", got, c.want)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != len(strings.Fields(c.want)) {
				t.Errorf("%v %v", entries, err)
			}
		})
	}
}

func TestList(t *testing.T) {
	s := open(t, t.TempDir(), incidents.Limits{MaxAge: 1 << 62})
	for i := range 12 { // in one second: ids of one and of two digits
		in := begin(t, s, at)
		in.Cause, in.State = fmt.Sprintf("cause-%d", i), incidents.StateFailed
		in.End = at.Add(time.Duration(i) * time.Second)
		if err := s.Update(in); err != nil {
			t.Fatal(err)
		}
	}
	causes := func(q incidents.Query) string {
		var out []string
		for _, in := range s.List(q) {
			out = append(out, strings.TrimPrefix(in.Cause, "cause-"))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		q    incidents.Query
		want string
	}{
		{incidents.Query{Limit: 3}, "11 10 9"},
		{incidents.Query{Limit: 3, Before: "20261124T031207Z-10"}, "8 7 6"},
		{incidents.Query{Text: "CAUSE-1"}, "11 10 1"},
		{incidents.Query{From: at.Add(10 * time.Second)}, "11 10"},
		{incidents.Query{To: at}, ""},
		{incidents.Query{Text: "nothing"}, ""},
		{incidents.Query{Before: "20261124T031207Z-1"}, ""},
	} {
		if got := causes(c.q); got != c.want {
			t.Errorf("%+v: %s, want %s", c.q, got, c.want)
		}
	}
}

// TestIncidentThatCannotBeWritten: it is in memory what it is, and on disk when it can be written. One whose directory
// somebody removed is not tried again.
func TestIncidentThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	failed, judging, gone := begin(t, s, at), begin(t, s, at), begin(t, s, at)
	inTheWay := func(in incidents.Incident) string { return filepath.Join(dir, in.ID, "incident.json") }
	for _, err := range []error{
		os.Remove(inTheWay(failed)), os.Mkdir(inTheWay(failed), 0o700), os.Remove(inTheWay(judging)),
		os.Mkdir(inTheWay(judging), 0o700), os.RemoveAll(filepath.Join(dir, gone.ID)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, err := range map[string]error{
		failed.ID: s.Fail(failed.ID, "no space"), judging.ID: s.Finish(judging.ID, []byte(judged)),
		gone.ID: s.Fail(gone.ID, "it was removed"),
	} {
		if !errors.Is(err, incidents.ErrUnwritten) || !s.Unwritten() {
			t.Errorf("%s: %v", id, err)
		}
	}
	are := func(s *incidents.Store) (states string) {
		for _, in := range s.List(incidents.Query{}) {
			states += in.State + " " + in.Cause + in.Error + "; "
		}
		return states
	}
	const want = "judged server-cfs-throttled; failed no space; "
	if got := are(s); got != "failed it was removed; "+want {
		t.Errorf("in memory: %s", got)
	}
	if err := s.Try(); err == nil || !s.Unwritten() {
		t.Errorf("tried again: %v", err)
	}
	if err := errors.Join(os.Remove(inTheWay(failed)), os.Remove(inTheWay(judging)), s.Try()); err != nil ||
		s.Unwritten() {
		t.Errorf("with room again: %v", err)
	}
	if got := are(open(t, dir, incidents.Limits{MaxAge: 1 << 62})); got != want {
		t.Errorf("after a restart: %s", got)
	}
}

// TestDamagedIncident: its file is set aside and said, and what else is there of it is kept and shown, also after
// another restart.
func TestDamagedIncident(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	whole, recorded := begin(t, s, at), begin(t, s, at.Add(time.Hour))
	files := map[string]string{
		whole.ID + "/recording.slowpath": "recorded", whole.ID + "/report.html": "<p>",
		whole.ID + "/diagnosis.json":        judged,
		recorded.ID + "/recording.slowpath": "recorded, too",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range []incidents.Incident{whole, recorded} {
		files[in.ID+"/incident.json.damaged"] = `{"id":`
		if err := os.WriteFile(filepath.Join(dir, in.ID, "incident.json"), []byte(`{"id":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for restart := range 2 {
		s = open(t, dir, incidents.Limits{MaxAge: 1 << 62})
		if got := len(s.Damaged()); restart == 0 && got != 2 || restart == 1 && got != 0 {
			t.Errorf("restart %d: damaged %q", restart, s.Damaged())
		}
		if in, _ := s.Get(whole.ID); in.State != incidents.StateJudged || in.Cause != "server-cfs-throttled" ||
			in.RecordingBytes != 8 || !in.Start.Equal(at) || in.End.Before(at) {
			t.Errorf("restart %d: %+v", restart, in)
		}
		if in, _ := s.Get(recorded.ID); in.State != incidents.StateFailed || in.RecordingBytes == 0 ||
			!strings.Contains(in.Error, "cannot be read") || !strings.Contains(in.Error, "slowpath doctor") {
			t.Errorf("restart %d: %+v", restart, in)
		}
		for name, text := range files {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
				t.Errorf("restart %d: %s holds %q, %v", restart, name, got, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, whole.ID, "diagnosis.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Diagnosis(whole.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged diagnosis: %v", err)
	}
}

// TestForeignFilesInTheStore: what is no incident is left alone, what cannot be read keeps its place, and nothing
// outside is read or changed.
func TestForeignFilesInTheStore(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	s := open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	link, huge, broken := begin(t, s, at), begin(t, s, at), begin(t, s, at)
	file := func(id string) string { return filepath.Join(dir, id, "incident.json") }
	for _, err := range []error{
		os.WriteFile(outside, []byte(`{"summary":"secret"}`), 0o600),
		os.Remove(file(link.ID)), os.Symlink(outside, file(link.ID)),
		os.WriteFile(file(huge.ID), make([]byte, 1<<20), 0o600),
		os.Remove(file(broken.ID)), syscall.Mkfifo(file(broken.ID), 0o600),
		os.Symlink("/", filepath.Join(dir, "20261124T031207Z-7")),
		os.Mkdir(filepath.Join(dir, "20261324T031207Z-1"), 0o700),
		os.WriteFile(filepath.Join(dir, "20261124T031207Z-8"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "marks.json"), []byte("["), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, incidents.Limits{MaxAge: 1 << 62})
	list := s.List(incidents.Query{})
	if len(list) != 3 {
		t.Errorf("%d incidents", len(list))
	}
	for _, in := range list {
		if in.State != incidents.StateFailed || in.Error == "" || in.Summary != "" || !in.Start.Equal(at) {
			t.Errorf("%+v", in)
		}
	}
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "3 files") ||
		strings.Count(notes, "its file cannot be read") != 3 {
		t.Errorf("said %q", s.Notes())
	}
	if damaged := strings.Join(s.Damaged(), "\n"); len(s.Damaged()) != 4 ||
		!strings.Contains(damaged, "it is now marks.json.damaged") {
		t.Errorf("damaged: %q", s.Damaged())
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != `{"summary":"secret"}` {
		t.Errorf("%q %v", b, err)
	}
	if err := s.Mark(incidents.Mark{Time: at, Text: "deploy"}); err != nil {
		t.Error(err)
	}
}

func TestMarks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{})
	for i := 1100; i > 0; i -= 100 {
		m := incidents.Mark{Time: at.Add(time.Duration(i) * time.Second), Text: fmt.Sprint(i)}
		if err := s.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []incidents.Mark{
		{}, {Time: at}, {Text: "no time"}, {Time: at, Text: "a\nb"}, {Time: at, Text: strings.Repeat("x", 201)},
	} {
		if err := s.Mark(bad); !errors.Is(err, incidents.ErrBadMark) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for _, s := range []*incidents.Store{s, open(t, dir, incidents.Limits{})} {
		got := s.Marks(at.Add(200*time.Second), at.Add(400*time.Second))
		if len(got) != 2 || got[0].Text != "200" || got[1].Text != "300" ||
			len(s.Marks(time.Time{}, time.Time{})) != 11 {
			t.Errorf("%v", got)
		}
	}
}

// BenchmarkList is how long 10 000 incidents take to be opened and listed.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir, incidents.Limits{MaxAge: 1 << 62, MaxCount: 20_000})
	for i := range 10_000 {
		in := begin(b, s, at.Add(time.Duration(i)*time.Minute))
		in.State = incidents.StateFailed
		if err := s.Update(in); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if n := len(s.List(incidents.Query{Limit: incidents.MaxLimit, Text: "20261"})); n != 1000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open(b, dir, incidents.Limits{MaxAge: 1 << 62, MaxCount: 20_000})
		}
	})
}

// TestLongTexts: an incident with the longest texts, which JSON escapes, is there again after a restart.
func TestLongTexts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, incidents.Limits{})
	text := strings.Repeat("\x01", 100_000)
	in, err := s.Begin(text, text, at)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Repeat(`"`+strings.Repeat(`\u0001`, 1000)+`",`, 100)
	causes := strings.ReplaceAll(names, `"\u0001`, `{"cause":"\u0001`)
	causes = strings.ReplaceAll(causes, `",`, `"},`)
	callers := strings.ReplaceAll(causes, `"cause"`, `"name"`)
	whole := `"` + strings.Repeat(`\u0001`, 10_000) + `"`
	err = s.Finish(in.ID, fmt.Appendf(nil, `{"schema":"slowpath.diagnosis/v1","verdict":%s,"summary":%s,`+
		`"target":{"nodes":[%s]},"callers":[%s],"findings":[%s]}`, whole, whole, strings.TrimSuffix(names, ","),
		strings.TrimSuffix(callers, ","), strings.TrimSuffix(causes, ",")))
	if err == nil {
		err = s.Fail(in.ID, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.Get(in.ID)
	s.Close()
	s = open(t, dir, incidents.Limits{})
	got, ok := s.Get(in.ID)
	if !ok || !reflect.DeepEqual(got, want) || len(got.Callers) != 16 || len(got.Error) < 4096 {
		t.Errorf("%v, %d callers, an error of %d bytes; notes: %.200q", ok, len(got.Callers), len(got.Error), s.Notes())
	}
}
