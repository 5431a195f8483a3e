package upload_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"slowpath/internal/bucket"
	"slowpath/internal/bucket/buckettest"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// TestS3Outage: a real server is stopped and started again while an agent has incidents: all arrive, each once, with a
// key that may only write.
func TestS3Outage(t *testing.T) {
	needs.Real(t, buckettest.Need)
	server := buckettest.Start(t)
	server.Up()
	a := newAgent(t, server.Bucket(buckettest.Writer), 0)
	a.o.Every = 100 * time.Millisecond
	reader := server.Bucket(buckettest.Reader)
	u := a.start()
	began := time.Now().Add(-2 * time.Hour) // such are not waited for
	begin := func(from, to int) {
		for i := range to - from {
			a.incident(began.Add(time.Duration(from+i)*time.Second), strings.Repeat(fmt.Sprint(from+i), 1000))
		}
	}
	arrived := func() map[string]int64 {
		sizes := map[string]int64{}
		if err := reader.List(context.Background(), "v1/cluster=shop%2Feu%20west/", func(o bucket.Object) bool {
			sizes[o.Key] = o.Size
			return len(sizes) < 100
		}); err != nil {
			t.Error(err)
		}
		return sizes
	}
	begin(0, 3)
	await.Until(t, "the first incidents are there", func() bool { return u.Stats().Sent == 3 })
	server.Stop()
	begin(3, 6)
	await.Until(t, "the bucket does not take the next ones", func() bool { return u.Stats().Error != "" })
	server.Up()
	await.Until(t, "they are there", func() bool { return u.Stats().Sent == 6 })
	a.stop()
	before := arrived()
	if len(before) != 18 {
		t.Errorf("%d objects: %v", len(before), before)
	}
	for key, size := range before {
		if path.Base(key) == "recording.slowpath" && size != 1000 {
			t.Errorf("%s has %d bytes", key, size)
		}
	}
	if err := a.folder.Remove("recordings.json"); err != nil { // it is not known any more what was sent
		t.Fatal(err)
	}
	u = a.start()
	await.Until(t, "all are sent again", func() bool { return u.Stats().Sent == 6 })
	a.stop()
	if after := arrived(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v, before %v", after, before)
	}
	if len(a.log) != 2 {
		t.Errorf("%q", a.log)
	}
}
