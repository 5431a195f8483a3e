package upload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/upload"
	"slowpath/internal/bucket"
	"slowpath/internal/house/memnet"
)

// inMemory is a bucket in memory, and what it was asked for.
type inMemory struct {
	mu      sync.Mutex
	objects map[string]string
	order   []string // keys of all requests
	away    bool
}

func (m *inMemory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/incidents/")
	_, there := m.objects[key]
	switch {
	case m.away:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Method != http.MethodPut || r.Header.Get("If-None-Match") != "*":
		w.WriteHeader(http.StatusForbidden) // the key may write what is not there, and nothing else
	case there:
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		m.objects[key] = payload(string(text))
	}
	m.order = append(m.order, key)
}

// payload is what a request has in its one chunk, which is signed: "SIZE;chunk-signature=…", the bytes, and an empty
// chunk.
func payload(text string) string {
	_, text, _ = strings.Cut(text, "\r\n")
	return text[:max(strings.LastIndex(text, "\r\n0;"), 0)]
}

func (m *inMemory) keys() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.objects {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func (m *inMemory) set(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away, m.order = away, nil
}

func (m *inMemory) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.order)
}

// agent is one that has incidents, and is started and stopped.
type agent struct {
	t      *testing.T
	store  *incidents.Store
	folder *folder.Folder
	o      upload.Options
	log    []string
	stop   func()
}

func newAgent(t *testing.T, to *bucket.Bucket, perDay int64) *agent {
	t.Helper()
	dir := foldertest.Open(t, t.TempDir())
	in, err := dir.Sub("incidents")
	if err != nil {
		t.Fatal(err)
	}
	store, err := incidents.Open(in, incidents.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a := &agent{t: t, store: store, folder: dir}
	a.o = upload.Options{
		Bucket: to, Cluster: "shop/eu west", Host: "redis-1", BytesPerDay: perDay, Store: store, Folder: dir,
		Log: func(line string) { a.log = append(a.log, line) },
	}
	return a
}

func (a *agent) start() *upload.Uploader {
	a.t.Helper()
	u, err := upload.New(a.o)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { u.Run(ctx); close(ended) }()
	a.stop = func() { cancel(); <-ended }
	a.t.Cleanup(a.stop)
	return u
}

// incident makes one of a recording, which is judged.
func (a *agent) incident(start time.Time, recording string) string {
	a.t.Helper()
	in, err := a.store.Begin("slow calls", "10.0.0.1:6379", start)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(in.ID, recording)
	diagnosis := `{"schema": "slowpath.diagnosis/v1", "verdict": "healthy"}`
	if err := a.store.Finish(in.ID, []byte(diagnosis)); err != nil {
		a.t.Fatal(err)
	}
	return in.ID
}

func (a *agent) write(id, recording string) {
	a.t.Helper()
	in, err := a.store.Folder(id)
	if err != nil {
		a.t.Fatal(err)
	}
	defer in.Close()
	if err := in.Replace(incidents.RecordingFile, []byte(recording)); err != nil {
		a.t.Fatal(err)
	}
}

// bubble runs a test with a bucket in memory.
func bubble(t *testing.T, test func(t *testing.T, m *inMemory, to *bucket.Bucket)) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	synctest.Test(t, func(t *testing.T) {
		m := &inMemory{objects: map[string]string{}}
		to, err := bucket.Open("s3://incidents/redis", bucket.Options{
			Endpoint: "http://127.0.0.1:8333", Dial: memnet.Serve(t, m),
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, m, to)
	})
}

// TestWhenFinal: an incident is written once it does not change any more, its file last, and never again. One that goes
// on is written after an hour.
func TestWhenFinal(t *testing.T) {
	bubble(t, func(t *testing.T, m *inMemory, to *bucket.Bucket) {
		a := newAgent(t, to, 0)
		u := a.start()
		id := a.incident(time.Now(), "first")
		in, _ := a.store.Get(id)
		in.State = incidents.StateWatching // its first verdict
		change := func() {
			t.Helper()
			if err := a.store.Update(in); err != nil {
				t.Fatal(err)
			}
		}
		change()
		<-time.After(time.Hour)
		a.write(id, "recording")
		in.State = incidents.StateJudged
		in.Start = time.Now()
		change()
		<-time.After(2 * time.Minute)
		if m.requests() != 0 {
			t.Error(m.keys())
		}
		<-time.After(2 * time.Minute)
		below := "redis/v1/cluster=shop%2Feu%20west/date=2000-01-01/host=redis-1/" + id + "/"
		want := []string{below + "recording.slowpath", below + "diagnosis.json", below + "incident.json"}
		var got incidents.Incident
		if err := json.Unmarshal([]byte(m.objects[want[2]]), &got); err != nil || !slices.Equal(m.order, want) ||
			m.objects[want[0]] != "recording" || got.ID != id || got.State != incidents.StateJudged ||
			!strings.HasPrefix(m.objects[want[1]], `{"schema"`) {
			t.Errorf("%q: %v, %v", m.order, m.objects, err)
		}
		in.SlowCalls++ // it went on
		change()
		<-time.After(time.Hour)
		if m.requests() != 3 {
			t.Errorf("%d requests", m.requests())
		}
		if s := u.Stats(); s.Sent != 1 || s.Bytes < 200 || s.Queued != 0 || s.Failed+s.Dropped > 0 {
			t.Errorf("%+v", s)
		}
		in, _ = a.store.Get(a.incident(time.Now(), "goes on"))
		for range 70 {
			<-time.After(time.Minute)
			in.SlowCalls++
			change()
		}
		if m.requests() != 6 {
			t.Errorf("%d requests", m.requests())
		}
	})
}

// TestFailedOnes: an incident without a verdict or a recording is written as it is, one that was removed is not, and
// one whose files cannot be read holds up no other.
func TestFailedOnes(t *testing.T) {
	bubble(t, func(t *testing.T, m *inMemory, to *bucket.Bucket) {
		a := newAgent(t, to, 0)
		a.start()
		in, err := a.store.Begin("slow calls", "10.0.0.1:6379", time.Now())
		if err == nil {
			err = a.store.Fail(in.ID, "there is no recording")
		}
		if err != nil {
			t.Fatal(err)
		}
		bad := a.incident(time.Now(), "gone soon")
		dir, err := a.store.Folder(bad)
		if err == nil {
			err = dir.Remove(incidents.RecordingFile)
		}
		if err != nil {
			t.Fatal(err)
		}
		good := a.incident(time.Now(), "good")
		<-time.After(5 * time.Minute)
		keys := m.keys()
		if len(keys) != 4 || !strings.HasSuffix(keys[0], in.ID+"/incident.json") || !strings.Contains(keys[3], good) {
			t.Errorf("%q", keys)
		}
		if len(a.log) != 1 || !strings.Contains(a.log[0], "the incident "+bad+" is not sent: ") {
			t.Errorf("%q", a.log)
		}
	})
}

// TestOutage: incidents of a time in which the bucket is away, and in which the agent is started again, are written
// once it is back; each once, and said in two lines.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T, m *inMemory, to *bucket.Bucket) {
		a := newAgent(t, to, 0)
		a.start()
		for i := range 30 {
			if i == 5 || i == 25 {
				m.set(i == 5)
			}
			a.incident(time.Now(), fmt.Sprint(i))
			if i == 15 {
				a.stop()
				a.start()
			}
			<-time.After(time.Minute)
		}
		<-time.After(10 * time.Minute)
		keys := m.keys()
		if len(keys) != 3*30 || m.requests() > 3*(30-2) {
			t.Errorf("%d objects, %d requests since it is back", len(keys), m.requests())
		}
		all := strings.Join(a.log, "\n")
		if len(a.log) != 3 || // two agents fail, and one sends again
			strings.Count(all, "s3://incidents/redis/ does not take incidents") != 2 ||
			!strings.Contains(all, "takes incidents again; those that are still kept are sent now") {
			t.Error(all)
		}
		a.stop()
		m.set(false)
		a.start()
		<-time.After(10 * time.Minute)
		if m.requests() != 0 {
			t.Errorf("%d requests of an agent that was started again", m.requests())
		}
		if err := a.folder.Remove("recordings.json"); err != nil {
			t.Fatal(err)
		}
		a.stop()
		a.start()
		<-time.After(10 * time.Minute)
		if m.requests() != 3*30 || len(m.keys()) != 3*30 {
			t.Errorf("%d requests where it is not known what was sent", m.requests())
		}
	})
}

// TestBudgetWaits: what is above the budget waits, which is said once.
func TestBudgetWaits(t *testing.T) {
	bubble(t, func(t *testing.T, m *inMemory, to *bucket.Bucket) {
		const perDay = 10 << 20
		a := newAgent(t, to, perDay)
		u := a.start()
		for range 20 {
			a.incident(time.Now(), strings.Repeat("x", 1<<20))
		}
		<-time.After(24 * time.Hour)
		if s := u.Stats(); s.Bytes > perDay+2<<20 || s.Sent < 8 || s.Queued == 0 || s.Sent+s.Queued != 20 {
			t.Errorf("%+v", s)
		}
		if len(a.log) != 1 || !strings.HasSuffix(a.log[0], "as --recordings-bytes-per-day allows by now") {
			t.Errorf("%q", a.log)
		}
		<-time.After(48 * time.Hour)
		if s := u.Stats(); s.Sent != 20 {
			t.Errorf("%+v", s)
		}
	})
}
