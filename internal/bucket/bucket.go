// Package bucket is a small client of buckets that speak S3. Objects are written once, listed and read, each within
// bounds of the caller. A key that may only write is enough to write.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"slowpath/internal/format"
)

// Bucket is the part of a bucket below a prefix: keys are those after it.
type Bucket struct {
	client *minio.Client
	name   string
	prefix string // empty, or ends in /
	flags  string
}

// Object is what a bucket says of an object.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// ErrTooLarge says that an object has more bytes than its reader takes.
var ErrTooLarge = errors.New("it is too large")

const (
	tries      = 4       // of a request, with pauses of up to a second that grow
	maxPage    = 2 << 20 // bytes of a page of a list: it has 1000 keys of at most 1 kB
	maxKeys    = 1000    // of a page
	dialTime   = 10 * time.Second
	answerTime = time.Minute // from the end of a request to the begin of its answer
)

// String is the address of the bucket as Open takes it. Write b.String() among the operands of fmt: where b is one, the
// linker keeps every method of the client, 1.4 MB.
func (b *Bucket) String() string { return scheme + b.name + "/" + b.prefix }

// Endpoint is the address of its server.
func (b *Bucket) Endpoint() string { return b.client.EndpointURL().String() }

// PutIfAbsent writes an object that is not there yet: one that is there stays, which is no error.
func (b *Bucket) PutIfAbsent(ctx context.Context, key string, from io.ReaderAt, size int64) error {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true}
	o.SetMatchETagExcept("*")
	_, err := b.client.PutObject(ctx, b.name, b.prefix+key, io.NewSectionReader(from, 0, size), size, o)
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode == http.StatusPreconditionFailed {
		return nil
	}
	return b.explain("s3:PutObject", err)
}

// List tells of the objects whose keys begin with a prefix, in the order of their keys, until each is false. It holds
// one page in memory. A list without an end is bounded by each and by ctx.
func (b *Bucket) List(ctx context.Context, prefix string, each func(Object) bool) error {
	return b.list(ctx, prefix, true, each)
}

// Folders tells of the folders right below one, which is empty or ends in /, as keys that end in /: until each is
// false. Objects in them are not listed, those beside them are skipped.
func (b *Bucket) Folders(ctx context.Context, below string, each func(key string) bool) error {
	return b.list(ctx, below, false, func(o Object) bool { return !strings.HasSuffix(o.Key, "/") || each(o.Key) })
}

func (b *Bucket) list(ctx context.Context, prefix string, deep bool, each func(Object) bool) error {
	owners := false
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix + prefix, Recursive: deep, MaxKeys: maxKeys, FetchOwner: &owners,
	}) {
		if o.Err != nil {
			return b.explain("s3:ListBucket", o.Err)
		}
		if len(o.Key) < len(b.prefix) {
			return fmt.Errorf("%s lists the key %q, which nobody asked for", b.String(), o.Key)
		}
		if !each(Object{o.Key[len(b.prefix):], o.Size, o.LastModified}) {
			return nil
		}
	}
	return ctx.Err()
}

// Get reads an object of at most so many bytes: ErrTooLarge where it has more, fs.ErrNotExist where there is none.
func (b *Bucket) Get(ctx context.Context, key string, into io.Writer, maxBytes int64) error {
	body, about, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return b.explain("s3:GetObject", err)
	}
	defer body.Close()
	if about.Size <= maxBytes { // -1: it is not said
		_, err = io.Copy(into, io.LimitReader(body, maxBytes))
	}
	if more, _ := io.ReadFull(body, make([]byte, 1)); err == nil && more > 0 {
		err = fmt.Errorf("%w: more than %s", ErrTooLarge, format.Bytes(maxBytes))
	}
	if err != nil {
		return fmt.Errorf("reading %s%s: %w", b.String(), key, err)
	}
	return nil
}
