package manyhosts_test

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/bucket"
	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
)

// fakeBucket lists and gives objects, and says what it was asked for.
type fakeBucket struct {
	mu      sync.Mutex
	objects map[string]string
	sizes   map[string]int // where the list lies
	asked   []string
	endless string // a prefix below which there are objects without an end
}

func (f *fakeBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	query := r.URL.Query()
	if !query.Has("list-type") {
		key := strings.TrimPrefix(r.URL.Path, "/incidents/redis/")
		f.asked = append(f.asked, "GET "+key)
		text, ok := f.objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		w.Header().Set("Last-Modified", "Sat, 28 Nov 2026 03:12:07 GMT")
		fmt.Fprint(w, text)
		return
	}
	prefix := strings.TrimPrefix(query.Get("prefix"), "redis/")
	f.asked = append(f.asked, "LIST "+prefix+query.Get("delimiter"))
	type object struct {
		Key  string
		Size int
	}
	type folder struct{ Prefix string }
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []object
		CommonPrefixes        []folder
	}
	if f.endless != "" && strings.HasPrefix(prefix, f.endless) && query.Get("delimiter") == "" {
		answer.IsTruncated, answer.NextContinuationToken = true, "more"
		for i := range 1000 {
			answer.Contents = append(answer.Contents, object{fmt.Sprintf("redis/%s%d", prefix, i), 1})
		}
	}
	seen := map[string]bool{}
	for key, text := range f.objects {
		rest, ok := strings.CutPrefix(key, prefix)
		name, _, below := strings.Cut(rest, "/")
		switch {
		case !ok:
		case below && query.Get("delimiter") != "":
			if !seen[name] {
				answer.CommonPrefixes = append(answer.CommonPrefixes, folder{"redis/" + prefix + name + "/"})
			}
			seen[name] = true
		default:
			answer.Contents = append(answer.Contents, object{"redis/" + key, cmp.Or(f.sizes[key], len(text))})
		}
	}
	_ = xml.NewEncoder(w).Encode(answer)
}

func (f *fakeBucket) gets() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.asked {
		if strings.HasPrefix(one, "GET ") {
			n++
		}
	}
	f.asked = nil
	return n
}

// put has an incident of a host, which began so long after noon.
func (f *fakeBucket) put(host string, after time.Duration) string {
	at := noon.Add(after)
	dir := fmt.Sprintf("v1/cluster=shop%%2Feu/date=%s/host=%s/%s-1/", at.Format(time.DateOnly), host,
		at.Format("20060102T150405Z"))
	f.objects[dir+"recording.slowpath"] = "recording of " + host
	f.objects[dir+"diagnosis.json"] = "{}"
	f.objects[dir+"incident.json"] = "{}"
	return dir
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// faked is a bucket that answers in this process, and how it is asked.
func faked(t *testing.T) (*fakeBucket, *manyhosts.BucketOptions, *[]string) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	f := &fakeBucket{objects: map[string]string{}, sizes: map[string]int{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	b, err := bucket.Open("s3://incidents/redis/", bucket.Options{Endpoint: server.URL, Flags: "-"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	return f, &manyhosts.BucketOptions{
		Bucket: b, Dir: t.TempDir(), From: noon, To: noon.Add(time.Hour), MaxBytes: 1 << 20,
		Say: func(line string) { said = append(said, line) }, Show: func(string, ...any) {},
	}, &said
}

func fetch(t *testing.T, o *manyhosts.BucketOptions) (hosts []string, got manyhosts.Fetched) {
	t.Helper()
	got, err := manyhosts.Fetch(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range got.Paths {
		host := strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(path))), "host=")
		text, err := os.ReadFile(path)
		if err != nil || string(text) != "recording of "+host {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		hosts = append(hosts, host)
	}
	return hosts, got
}

// TestFetchOnce: incidents of the time and the cluster are fetched, each once, and no other day is listed.
func TestFetchOnce(t *testing.T) {
	f, o, said := faked(t)
	f.put("a", 0)
	f.put("b", 30*time.Minute)
	f.put("before", -30*time.Hour)
	f.put("early", -5*time.Hour)
	f.put("after", 30*time.Hour)
	delete(f.objects, f.put("unfinished", time.Minute)+"incident.json")
	delete(f.objects, f.put("unrecorded", time.Minute)+"recording.slowpath")
	delete(f.objects, f.put("unjudged", -time.Second)+"diagnosis.json")
	hosts, got := fetch(t, o)
	if !slices.Equal(hosts, []string{"b", "a", "unjudged"}) || got.New != 3 || got.Incidents != 4 || f.gets() != 5 {
		t.Errorf("%q, %+v, %q", hosts, got, f.asked)
	}
	if len(*said) != 1 || (*said)[0] != "1 incident without a recording: left out" {
		t.Errorf("%q", *said)
	}
	o.Cluster = "shop/eu"
	hosts, got = fetch(t, o)
	if len(hosts) != 3 || got.New != 0 || got.Bytes != 0 {
		t.Errorf("%q, %+v", hosts, got)
	}
	want := []string{
		"LIST v1//", "LIST v1/cluster=shop%2Feu//", "LIST v1/cluster=shop%2Feu/date=2026-11-28/",
	}
	if !slices.Equal(f.asked, want) {
		t.Errorf("%q", f.asked)
	}
	o.Cluster = "shop"
	if hosts, _ := fetch(t, o); hosts != nil {
		t.Errorf("%q", hosts)
	}
}

// TestFetchOfOne: with an incident come those of other hosts at its time, and no others.
func TestFetchOfOne(t *testing.T) {
	f, o, _ := faked(t)
	f.put("a", 0)
	f.put("b", time.Minute)
	f.put("c", time.Second)
	f.put("d", 5*time.Hour)
	o.From, o.To = noon.Add(-100*time.Hour), noon.Add(-99*time.Hour)
	for id, want := range map[string][]string{
		"b/20261128T120100Z-1": {"b", "a", "c"}, "20261128T170000Z-1": {"d"}, "20261128T120100Z-2": nil,
		"d/20261128T120100Z-1": nil, "nothing": nil, "../../etc": nil, "": nil,
	} {
		if o.ID = id; id == "" {
			o.ID = "/"
		}
		hosts, _ := fetch(t, o)
		if len(hosts) > 0 {
			slices.Sort(hosts[1:])
		}
		if !slices.Equal(hosts, want) {
			t.Errorf("%s: %q", id, hosts)
		}
	}
}

// TestHostileKeys: what no agent writes is not fetched, and leads nowhere out of the folder.
func TestHostileKeys(t *testing.T) {
	const day = "v1/cluster=shop%2Feu/date=2026-11-28/"
	for _, key := range []string{
		day + "host=a/../../../../../../tmp/recording.slowpath",
		day + "host=../20261128T120000Z-2/other",
		day + "host=b/20261128T120000Z-2/../recording.slowpath",
		day + "host=b/20261128T120000Z-2//recording.slowpath",
		day + "host=b/20261128T120000Z-2/recording.slowpath/",
		day + "host=b/20261128T120000Z-2/recording.slowpath\n",
		day + "host=b/20261128T120000Z-2/recording.slowpath.part",
		day + "host=b\\..\\c/20261128T120000Z-2/recording.slowpath",
		day + "host=" + strings.Repeat("b", 201) + "/20261128T120000Z-2/recording.slowpath",
		day + "host=b/20261129T120000Z-2/recording.slowpath",
		day + "host=b/20261141T120000Z-2/recording.slowpath",
		day + "host=b/20261128T120000Z-1234567/recording.slowpath",
		day + "host=b\x1b[2J/20261128T120000Z-2/recording.slowpath",
		day + "/etc/passwd",
	} {
		f, o, said := faked(t)
		f.put("a", 0)
		f.objects[key] = "hostile"
		f.objects[strings.TrimSuffix(filepath.Dir(key), "/")+"/incident.json"] = "{}"
		hosts, _ := fetch(t, o)
		if !slices.Equal(hosts, []string{"a"}) || f.gets() != 2 {
			t.Errorf("%q: %q, %q", key, hosts, f.asked)
		}
		if all := strings.Join(*said, " "); !strings.Contains(all, "that no agent writes are left out") {
			t.Errorf("%q: %q", key, all)
		}
	}
}

// TestLyingBucket: objects that are larger or shorter than the list says, or gone, are left out, and said in one line.
func TestLyingBucket(t *testing.T) {
	f, o, said := faked(t)
	f.put("good", 0)
	f.sizes[f.put("longer", time.Second)+"recording.slowpath"] = 3
	f.sizes[f.put("shorter", 2*time.Second)+"diagnosis.json"] = 3000
	f.sizes[f.put("huge", 3*time.Second)+"recording.slowpath"] = 2 << 30
	f.sizes[f.put("negative", 4*time.Second)+"recording.slowpath"] = -1
	hosts, got := fetch(t, o)
	if !slices.Equal(hosts, []string{"good"}) || got.New != 1 {
		t.Errorf("%q, %+v", hosts, got)
	}
	all := strings.Join(*said, "\n")
	if len(*said) != 4 || !strings.Contains(all, "2 incidents left out, as the bucket does not give what it lists: ") ||
		!strings.Contains(all, "more than 1.07 GB are left out, such as v1/cluster=shop%2Feu/") {
		t.Error(all)
	}
	left := 0
	err := filepath.WalkDir(o.Dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".part") {
			left++
		}
		return err
	})
	if left > 0 || err != nil {
		t.Errorf("%d parts are left, %v", left, err)
	}
}

// TestBoundsOfFetch: the bytes, the keys of a list and the time of the user are bounds; what is left out is said, and
// what was fetched stays.
func TestBoundsOfFetch(t *testing.T) {
	f, o, said := faked(t)
	for i := range 5 {
		f.put(fmt.Sprint("h", i), time.Duration(i)*time.Minute)
	}
	o.MaxBytes = 51
	hosts, got := fetch(t, o)
	if !slices.Equal(hosts, []string{"h4", "h3", "h2"}) || got.Bytes != 51 {
		t.Errorf("%q, %+v", hosts, got)
	}
	if len(*said) != 1 || !strings.HasPrefix((*said)[0], "2 incidents (34 B) of 5 left out, the oldest: ") ||
		!strings.HasSuffix((*said)[0], "--max-fetch") {
		t.Errorf("%q", *said)
	}
	if hosts, got = fetch(t, o); len(hosts) != 5 || got.New != 2 { // the others are here
		t.Errorf("%q, %+v", hosts, got)
	}
	if err := manyhosts.Trim(o.Dir, 60, got.Paths[2:]); err != nil {
		t.Fatal(err)
	}
	if hosts, got = fetch(t, o); len(hosts) != 5 || got.New != 2 {
		t.Errorf("after room was made: %q, %+v", hosts, got)
	}
	*said = nil
	f.endless = "v1/cluster=shop%2Feu/date=2026-11-28/"
	f.gets()
	o.MaxKeys = 5000
	if hosts, got = fetch(t, o); len(f.asked) > 15 || got.Objects > 5100 {
		t.Errorf("%d requests, %+v, %q", len(f.asked), got, hosts)
	}
	if all := strings.Join(*said, "\n"); !strings.Contains(all, "has more than 5000 keys of this time") {
		t.Error(all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Show = func(string, ...any) { cancel() }
	if _, err := manyhosts.Fetch(ctx, *o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestEncodedNames: names of clusters and hosts in a path are as agents encode them, or as they are.
func TestEncodedNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	for i, at := range []string{"cluster=shop%2Feu/host=web%201", "cluster=-/host=50%", "cluster=shop/host=web 1"} {
		record(t, filepath.Join(dir, at, "1.slowpath"), "", recording.Client, "10.0.0.9:6379",
			fmt.Sprintf("10.0.0.%d:4000", i+1), true, 0)
	}
	f, _ := open(t, dir)
	var got []string
	for question, column := range map[string]string{"worst": "cluster", "incidents": "host"} {
		a, _ := ask(t, f, question)
		for _, row := range a.Rows.Values {
			got = append(got, column+" "+a.Rows.Text(row, column))
		}
	}
	slices.Sort(got)
	if want := []string{
		"cluster ", "cluster shop", "cluster shop/eu", "host 50%", "host web 1", "host web 1",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
