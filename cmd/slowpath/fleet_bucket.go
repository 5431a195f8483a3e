package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/bucket"
	"slowpath/internal/cli"
	"slowpath/internal/manyhosts"
	"slowpath/internal/outfile"
)

// bucketFlags are those of a bucket as a source.
type bucketFlags struct {
	bucket.Options
	maxFetch cli.Size
}

const (
	bucketScheme = "s3://"
	// bucketTime is what is asked of a bucket where nothing else is said.
	bucketTime = 24 * time.Hour
	maxFetch   = 2 << 30 // bytes
)

func addBucketFlags(fl *pflag.FlagSet, b *bucketFlags) {
	b.Flags, b.maxFetch = "-", maxFetch // --endpoint and so on
	fl.StringVar(&b.Endpoint, "endpoint", "", "of s3://: `address` of an S3 server; without it, AWS_ENDPOINT_URL or "+
		"AWS")
	fl.StringVar(&b.Region, "region", "", "`region` of the bucket; without it, AWS_REGION or us-east-1")
	fl.StringVar(&b.Credentials, "credentials", "", "`file` with its key, as ~/.aws/credentials; without it, as the "+
		"tools of AWS find theirs")
	fl.StringVar(&b.CA, "ca", "", "`file` with the CA certificates of the S3 server")
	fl.BoolVar(&b.Plain, "plain", false, "an S3 server on another host may be without TLS")
	fl.Var(&b.maxFetch, "max-fetch", "how much is fetched from a bucket at most")
}

// openBucket brings the incidents of the time that is asked into a folder of the cache, and reads that.
func (a *app) openBucket(ctx context.Context, f *fleetFlags, id string, sources []string) (*manyhosts.Folder, error) {
	if len(sources) > 1 {
		return nil, cli.Usagef("%s: ask a bucket alone, without other sources", strings.Join(sources, " "))
	}
	b, err := bucket.Open(sources[0], f.bucket.Options)
	if err != nil {
		return nil, cli.Usagef("%s: %w", sources[0], err)
	}
	if f.filter.To, err = timeOf("--to", f.to, time.Now().Truncate(time.Second)); err != nil {
		return nil, err
	}
	if err := f.between(f.filter.To.Add(-bucketTime), f.filter.To); err != nil {
		return nil, err
	}
	dir, err := a.bucketFolder(b)
	if err != nil {
		return nil, err
	}
	o := manyhosts.BucketOptions{
		Bucket: b, Dir: dir, From: f.filter.From, To: f.filter.To, Cluster: f.filter.Cluster, ID: id,
		MaxBytes: int64(f.bucket.maxFetch), Say: a.Say, Show: a.Progress,
	}
	got, err := manyhosts.Fetch(ctx, o)
	switch {
	case errors.Is(err, manyhosts.ErrBucket):
		return nil, cli.WithCode(cli.ExitConnect, err)
	case err != nil:
		return nil, err
	case len(got.Paths) == 0:
		return nil, cli.Usage(nothingToAsk{noIncidents(o, got)})
	}
	if got.New > 0 {
		a.Say(fmt.Sprintf("fetched %d of %d recordings into %s", got.New, len(got.Paths), dir))
	}
	if err := manyhosts.Trim(dir, 2*int64(f.bucket.maxFetch), got.Paths); err != nil {
		a.Say(fmt.Sprintf("%s: %v", dir, err)) // it is full, or soon
	}
	defer a.Working("reading the recordings")()
	return manyhosts.OpenFolder(ctx, manyhosts.FolderOptions{
		Paths: got.Paths, Index: dir + ".fleet", Version: a.Version, Say: a.Say, Show: a.Progress, Keep: true,
		From: f.filter.From, To: f.filter.To,
	})
}

// nothingToAsk is manyhosts.ErrNoRecordings in other words.
type nothingToAsk struct{ error }

// Is implements that of package errors.
func (nothingToAsk) Is(target error) bool { return target == manyhosts.ErrNoRecordings }

// noIncidents says that there is nothing to ask, and what to ask for.
func noIncidents(o manyhosts.BucketOptions, got manyhosts.Fetched) error {
	switch {
	case o.ID != "":
		return fmt.Errorf("there is no incident %s with a recording in %s: slowpath fleet %s incidents names them",
			o.ID, o.Bucket.String(), o.Bucket.String())
	case got.Incidents > 0:
		return fmt.Errorf("%s has %d incidents of this time, and no recording of them that can be fetched",
			o.Bucket.String(), got.Incidents)
	}
	return fmt.Errorf("%s has no incident from %s to %s (v1/cluster=…/date=…): correct the prefix or --cluster, or "+
		"ask for more, as by --last 30d", o.Bucket.String(), o.From.UTC().Format(time.RFC3339),
		o.To.UTC().Format(time.RFC3339))
}

// bucketFolder is where objects of a bucket are kept: in the cache of the user, else where recordings of the moment
// are.
func (a *app) bucketFolder(b *bucket.Bucket) (string, error) {
	of := sha256.Sum256([]byte(b.Endpoint() + " " + b.String()))
	name := fmt.Sprintf("%x", of[:8])
	cache, err := os.UserCacheDir()
	if err == nil {
		dir := filepath.Join(cache, "slowpath", "fleet", name)
		if err = outfile.Directory(dir); err == nil {
			err = outfile.Write(filepath.Join(dir, "part"), func(io.Writer) error { return nil })
		}
		if err == nil {
			_ = outfile.Remove(filepath.Join(dir, "part")) // another slowpath may have
			return dir, nil
		}
	}
	dir, _, err := a.ScratchPlace()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}
