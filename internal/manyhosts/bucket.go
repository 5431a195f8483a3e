package manyhosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/bucket"
	"slowpath/internal/format"
)

// Bounds of a bucket.
const (
	maxListed    = 200_000 // keys, where the caller gives no other bound
	maxClusters  = 1000
	maxRecording = 1 << 30 // bytes
	fetchers     = 8       // at once
	// around is how far from the time that is asked the incidents begin that are fetched: a recording has calls before
	// the begin of its incident and after it. Of one incident those belong together that overlap.
	around       = time.Hour
	aroundOfOne  = 15 * time.Minute
	incidentTime = "20060102T150405Z" // the begin of an ID
)

// BucketOptions of Fetch.
type BucketOptions struct {
	Bucket   *bucket.Bucket
	Dir      string    // where the objects are kept, by their keys
	From, To time.Time // of which incidents
	Cluster  string    // of which cluster; empty: all
	ID       string    // of this incident, and those of other hosts at its time; empty: all
	MaxBytes int64     // fetched at most
	MaxKeys  int       // listed at most; 0: 200 000
	Say      func(string)
	Show     func(format string, args ...any)
}

// Fetched is what Fetch found.
type Fetched struct {
	Paths     []string // of recordings
	Incidents int      // of the time
	Objects   int      // and folders that were listed
	New       int      // recordings that were not there
	Bytes     int64    // fetched
}

// ErrBucket says that the bucket gives nothing.
var ErrBucket = errors.New("cannot be read")

// keyed are the keys that agents write. A key is a path here: it has no part that leads out of the folder.
var keyed = regexp.MustCompile(`^v1/cluster=[\w%.~$&+:=@-]{1,200}/date=(\d{4}-\d\d-\d\d)/` +
	`host=([\w%.~$&+:=@-]{1,200})/(\d{8}T\d{6}Z-[1-9]\d{0,5})/` +
	`(recording\.slowpath|diagnosis\.json|incident\.json)$`)

// stored is an incident of a bucket.
type stored struct {
	dir, id, host string
	at            time.Time
	bytes         map[string]int64 // of its objects, by their names
}

// objectsOf are those that are fetched. A recording is the last: where it is, the diagnosis is that of the agent.
var objectsOf = []string{"diagnosis.json", "recording.slowpath"}

// Fetch brings incidents of a bucket into a folder. What is there is not fetched again: keys are written once.
func Fetch(ctx context.Context, o BucketOptions) (out Fetched, err error) {
	f := fetching{o: o, all: map[string]*stored{}}
	f.o.MaxKeys = cmp.Or(o.MaxKeys, maxListed)
	if o.ID != "" {
		at, ok := timeOfID(path.Base(o.ID))
		if !ok {
			return out, nil
		}
		f.o.From, f.o.To, f.around = at, at.Add(time.Second), aroundOfOne
	} else {
		f.around = around
	}
	o.Show("listing %s", o.Bucket.String())
	if err := f.list(ctx); err != nil {
		return out, fmt.Errorf("%s %w: %w", o.Bucket.String(), ErrBucket, err)
	}
	chosen := f.choose()
	err = f.fetch(ctx, chosen)
	out = Fetched{Incidents: f.incidents, Objects: f.listed, New: f.fetched, Bytes: f.bytes}
	for _, in := range chosen {
		if f.has(in, "recording.slowpath") {
			out.Paths = append(out.Paths, f.path(in, "recording.slowpath"))
		}
	}
	return out, err
}

// timeOfID is when an incident began.
func timeOfID(id string) (time.Time, bool) {
	before, _, _ := strings.Cut(id, "-")
	at, err := time.Parse(incidentTime, before)
	return at, err == nil
}

// fetching is one Fetch.
type fetching struct {
	o         BucketOptions
	around    time.Duration
	all       map[string]*stored
	listed    int // objects
	foreign   string
	incidents int

	mu      sync.Mutex
	fetched int
	bytes   int64
	failed  []string
}

// list lists the days of the time, the last one first, as far as the bound of keys goes.
func (f *fetching) list(ctx context.Context) error {
	var clusters, days []string
	if err := f.o.Bucket.Folders(ctx, "v1/", func(key string) bool {
		name, ok := strings.CutPrefix(path.Base(key), "cluster=")
		if ok && (f.o.Cluster == "" || nameIn(name) == f.o.Cluster) {
			clusters = append(clusters, key)
		}
		f.listed++
		return len(clusters) < maxClusters && f.listed < f.o.MaxKeys
	}); err != nil {
		return err
	}
	if len(clusters) == maxClusters {
		f.o.Say(fmt.Sprintf("%s has %d clusters or more: the others are left out; name one (--cluster)",
			f.o.Bucket.String(), maxClusters))
	}
	first, last := f.o.From.Add(-f.around).UTC().Format(time.DateOnly), f.o.To.Add(f.around).UTC().Format(time.DateOnly)
	for _, cluster := range clusters {
		if err := f.o.Bucket.Folders(ctx, cluster, func(key string) bool {
			if day, ok := strings.CutPrefix(path.Base(key), "date="); ok && first <= day && day <= last {
				days = append(days, key)
			}
			f.listed++
			return f.listed < f.o.MaxKeys
		}); err != nil {
			return err
		}
	}
	slices.SortStableFunc(days, func(a, b string) int { return strings.Compare(path.Base(b), path.Base(a)) })
	for _, day := range days {
		if f.listed >= f.o.MaxKeys {
			break
		}
		if err := f.o.Bucket.List(ctx, day, func(object bucket.Object) bool {
			if f.listed++; f.listed > f.o.MaxKeys {
				return false
			}
			f.note(object)
			return true
		}); err != nil {
			return err
		}
	}
	if f.listed >= f.o.MaxKeys {
		f.o.Say(fmt.Sprintf("%s has more than %d keys of this time: those after them are left out; ask for a shorter "+
			"time, or one --cluster", f.o.Bucket.String(), f.o.MaxKeys))
	}
	if f.foreign != "" {
		f.o.Say(fmt.Sprintf("%s: objects that no agent writes are left out, such as %q", f.o.Bucket.String(),
			f.foreign))
	}
	return nil
}

// note keeps what a list says of an object of the time.
func (f *fetching) note(o bucket.Object) {
	m := keyed.FindStringSubmatch(o.Key)
	at, ok := time.Time{}, false
	if m != nil {
		at, ok = timeOfID(m[3])
	}
	if !ok || m[1] != at.Format(time.DateOnly) || o.Size < 0 {
		f.foreign = cmp.Or(f.foreign, o.Key[:min(len(o.Key), 200)])
		return
	}
	if at.Before(f.o.From.Add(-f.around)) || at.After(f.o.To.Add(f.around)) {
		return
	}
	dir := path.Dir(o.Key)
	if f.all[dir] == nil {
		f.all[dir] = &stored{dir: dir, id: m[3], host: nameIn(m[2]), at: at, bytes: map[string]int64{}}
	}
	f.all[dir].bytes[m[4]] = o.Size
}

// choose are the incidents that are asked for, the last ones first; of one incident itself and what is nearest to it.
func (f *fetching) choose() (out []*stored) {
	without, large := 0, ""
	for _, in := range f.all {
		if _, complete := in.bytes["incident.json"]; !complete {
			continue // it is being written
		}
		f.incidents++
		bytes, ok := in.bytes["recording.slowpath"]
		switch {
		case !ok:
			without++
		case bytes > maxRecording || in.bytes["diagnosis.json"] > maxDiagnosis:
			large = max(large, in.dir)
		default:
			out = append(out, in)
		}
	}
	if without > 0 {
		f.o.Say(format.Count(without, "incident") + " without a recording: left out")
	}
	if large != "" {
		f.o.Say(fmt.Sprintf("incidents with recordings of more than %s are left out, such as %s",
			format.Bytes(maxRecording), large))
	}
	own := func(in *stored) bool { return f.o.ID == in.id || f.o.ID == in.host+"/"+in.id }
	slices.SortFunc(out, func(a, b *stored) int {
		order := b.at.Compare(a.at)
		if f.o.ID != "" {
			order = cmp.Compare(a.at.Sub(f.o.From).Abs(), b.at.Sub(f.o.From).Abs())
			if own(a) != own(b) {
				order = 1
				if own(a) {
					order = -1
				}
			}
		}
		return cmp.Or(order, strings.Compare(a.dir, b.dir))
	})
	if f.o.ID != "" && (len(out) == 0 || !own(out[0])) {
		return nil
	}
	return f.within(out)
}

// within leaves out what is beyond the bounds: those at the end that are not here yet.
func (f *fetching) within(all []*stored) (out []*stored) {
	left, bytes, leftBytes := 0, int64(0), int64(0)
	for _, in := range all {
		missing := int64(0)
		for _, name := range objectsOf {
			if !f.has(in, name) {
				missing += in.bytes[name]
			}
		}
		if missing > 0 && (left > 0 || bytes+missing > f.o.MaxBytes) || len(out) == maxFiles {
			left, leftBytes = left+1, leftBytes+missing
			continue
		}
		bytes += missing
		out = append(out, in)
	}
	if left > 0 {
		which := "the oldest"
		if f.o.ID != "" {
			which = "those farthest from it in time"
		}
		f.o.Say(fmt.Sprintf("%s (%s) of %d left out, "+which+": more than %s, or than %d recordings; ask for a "+
			"shorter time, or give more by --max-fetch", format.Count(left, "incident"), format.Bytes(leftBytes),
			len(all), format.Bytes(f.o.MaxBytes), maxFiles))
	}
	return out
}

func (f *fetching) path(in *stored, name string) string {
	return filepath.Join(f.o.Dir, filepath.FromSlash(in.dir), name)
}

// has reports whether an object is here, or not in the bucket.
func (f *fetching) has(in *stored, name string) bool {
	bytes, ok := in.bytes[name]
	info, err := os.Lstat(f.path(in, name))
	return !ok || err == nil && info.Mode().IsRegular() && info.Size() == bytes
}
