package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/upload"
	"slowpath/internal/agent/web"
	"slowpath/internal/bucket"
	"slowpath/internal/bucket/buckettest"
	"slowpath/internal/cli"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/manyhosts"
	"slowpath/internal/recording"
)

// incidentOf is a recording of the corpus with its diagnosis, and when it begins.
func incidentOf(t *testing.T, scenario string) (body, diagnosis []byte, begin time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), scenario+".slowpath")
	if err := corpus.Unpack(scenario, path); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.OpenToJudge(path)
	if err != nil {
		t.Fatal(err)
	}
	from, _ := rec.Window()
	var said, complained bytes.Buffer
	if code := appOn(&said, &complained).execute(t.Context(), []string{"doctor", path, "--json"}); code > 1 {
		t.Fatal(code, complained.String())
	}
	body, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body, said.Bytes(), time.Unix(0, from).UTC()
}

// TestS3Fleet: what agents wrote into a real bucket is asked as the same incidents in a directory are, and fetched
// once. A cut recording and foreign objects are told of; a bucket that is not there is said in one line.
func TestS3Fleet(t *testing.T) {
	needs.Real(t, buckettest.Need)
	server := buckettest.Start(t)
	server.Up()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	writer, dir := server.Bucket(buckettest.Writer), t.TempDir()
	first, last, id := time.Now(), time.Time{}, ""
	var body []byte
	for i, scenario := range []string{"client-pause-or-write-block", "healthy-mixed", "fork-latency"} {
		host := fmt.Sprint("web ", i)
		of, diagnosis, begin := incidentOf(t, scenario)
		in := foldertest.Open(t, t.TempDir())
		store, err := incidents.Open(in, incidents.Limits{MaxAge: 1 << 62, MaxHealthyAge: 1 << 62})
		if err != nil {
			t.Fatal(err)
		}
		one, err := store.Begin("slow calls", "10.0.0.1:6379", begin)
		if err != nil {
			t.Fatal(err)
		}
		at, err := store.Folder(one.ID)
		if err == nil {
			err = errors.Join(at.Replace(incidents.RecordingFile, of), store.Finish(one.ID, diagnosis))
		}
		if err != nil {
			t.Fatal(err)
		}
		u, err := upload.New(upload.Options{
			Bucket: writer, Cluster: "shop/eu", Host: host, Store: store, Folder: foldertest.Open(t, t.TempDir()),
			Every: 10 * time.Millisecond, Log: func(line string) { t.Error(line) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go u.Run(ctx)
		await.Until(t, "the incident is in the bucket", func() bool { return u.Stats().Sent == 1 })
		cancel()
		mirror := filepath.Join(dir, "cluster=shop%2Feu", "host="+host, one.ID)
		if err := errors.Join(os.MkdirAll(mirror, 0o700),
			os.WriteFile(filepath.Join(mirror, incidents.RecordingFile), of, 0o600),
			os.WriteFile(filepath.Join(mirror, incidents.DiagnosisFile), diagnosis, 0o600)); err != nil {
			t.Fatal(err)
		}
		if begin.Before(first) {
			first, body, id = begin, of, host+"/"+one.ID
		}
		if begin.After(last) {
			last = begin
		}
	}
	credentials := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(credentials, []byte("[default]\naws_access_key_id = "+buckettest.Reader+
		"\naws_secret_access_key = "+buckettest.Reader+"-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := []string{
		"--json", "--from", first.Add(-time.Minute).Format(time.RFC3339),
		"--to", last.Add(10 * time.Minute).Format(time.RFC3339),
	}
	fleet := func(source string, args ...string) (out, complained string, code int) {
		var said, errs bytes.Buffer
		args = append(append([]string{"fleet", source}, args...), of...)
		if strings.HasPrefix(source, "s3:") {
			args = append(args, "--endpoint", server.Endpoint(), "--credentials", credentials)
		}
		code = appOn(&said, &errs).execute(t.Context(), args)
		return said.String(), errs.String(), code
	}
	const source = "s3://" + buckettest.Name + "/redis"
	for i, question := range []string{"why", "worst", "calls", "who", "incidents", "why"} {
		here, _, code := fleet(dir, question)
		there, said, codeThere := fleet(source, question)
		if code != 0 || codeThere != 0 || here != there || !strings.Contains(here, "web ") && question == "incidents" {
			t.Errorf("%s: %d and %d: %s\n%s\n%s", question, code, codeThere, said, here, there)
		}
		if strings.Contains(said, "fetched 3 of 3 recordings into ") != (i == 0) {
			t.Errorf("%s: %q", question, said)
		}
	}
	t.Run("page", func(t *testing.T) {
		s := &shownSources{
			app: appOn(io.Discard, io.Discard), source: source, all: map[string]*shownSource{},
			bucket: bucket.Options{Endpoint: server.Endpoint(), Credentials: credentials},
		}
		defer s.close()
		for _, name := range []string{"why", "incidents"} {
			at := web.When{From: first.Add(-time.Minute), To: last.Add(10 * time.Minute)}
			opened, err := s.open(t.Context(), "", at)
			if err != nil {
				t.Fatal(err)
			}
			q, _ := manyhosts.QuestionOf(name)
			a, err := manyhosts.Ask(t.Context(), opened.Source, q, manyhosts.Filter{
				From: opened.From, To: opened.To, Limit: 20, Step: time.Minute,
			})
			opened.Done()
			var d manyhosts.Document
			here, _, _ := fleet(dir, name)
			if err := errors.Join(err, json.Unmarshal([]byte(here), &d)); err != nil ||
				len(a.Rows.Values) == 0 || len(a.Rows.Values) != len(d.Rows) {
				t.Errorf("%s: %d rows, of the directory %d: %v", name, len(a.Rows.Values), len(d.Rows), err)
			}
		}
		quiet := web.When{From: first.Add(-48 * time.Hour), To: first.Add(-24 * time.Hour)}
		if _, err := s.open(t.Context(), "", quiet); !errors.Is(err, manyhosts.ErrNoRecordings) {
			t.Errorf("a day without incidents: %v", err)
		}
	})
	t.Run("doctor", func(t *testing.T) {
		out, said, code := fleet(source, "doctor", id)
		var doc struct{ Schema, Verdict string }
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code > 1 || doc.Schema != "slowpath.diagnosis/v1" {
			t.Errorf("%d, %v: %s", code, err, said)
		}
		if _, said, code := fleet(source, "doctor", "nobody/20261128T120000Z-1"); code != cli.ExitUsage ||
			!strings.Contains(said, "there is no incident nobody/20261128T120000Z-1") {
			t.Errorf("%d: %s", code, said)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		day := "v1/cluster=shop%2Feu/date=" + first.Format(time.DateOnly) + "/"
		incident := day + "host=cut/" + first.Format("20060102T150405Z") + "-1/"
		for key, text := range map[string]string{
			incident + "recording.slowpath": string(body[:len(body)/2]), incident + "incident.json": "{}",
			day + "host=a/../../evil": "x", day + "host=a/evil.sh": "x",
		} {
			err := writer.PutIfAbsent(t.Context(), key, strings.NewReader(text), int64(len(text)))
			if err != nil && !strings.Contains(key, "..") { // servers may refuse it
				t.Fatal(key, err)
			}
		}
		out, said, code := fleet(source, "incidents")
		if code != 0 || !strings.Contains(said, "host=cut/") || strings.Contains(said, "is left out: ") ==
			strings.Contains(out, `"cut"`) || !strings.Contains(said, "objects that no agent writes are left out") {
			t.Errorf("%d: %s\n%s", code, said, out)
		}
	})
	t.Run("errors", func(t *testing.T) {
		for source, want := range map[string]string{
			"s3://no-such-bucket/redis": "s3://no-such-bucket/redis/ cannot be read: ",
			"s3://" + buckettest.Name:   "no incident from",
		} {
			code := map[bool]int{true: cli.ExitConnect, false: cli.ExitUsage}[strings.Contains(source, "no-such")]
			out, said, got := fleet(source, "why")
			if got != code || out != "" || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
				t.Errorf("%s: %d: %s", source, got, said)
			}
		}
		if _, said, code := fleet(source, "why", dir, "worst"); code != cli.ExitUsage {
			t.Errorf("%d: %s", code, said)
		}
	})
	err := filepath.WalkDir(os.Getenv("XDG_CACHE_HOME"), func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, "evil") || strings.HasSuffix(path, ".part") {
			t.Error(path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
