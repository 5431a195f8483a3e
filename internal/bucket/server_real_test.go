package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/bucket"
	"slowpath/internal/bucket/buckettest"
	"slowpath/internal/house/needs"
)

// TestS3Server: a real server takes an object once, lists pages of them, and gives them; what it refuses is said in one
// line with the fix.
func TestS3Server(t *testing.T) {
	needs.Real(t, buckettest.Need)
	server := buckettest.Start(t)
	server.Up()
	writer, reader, ctx := server.Bucket(buckettest.Writer), server.Bucket(buckettest.Reader), context.Background()
	put := func(to *bucket.Bucket, key, text string) error {
		return to.PutIfAbsent(ctx, key, strings.NewReader(text), int64(len(text)))
	}
	t.Run("once", func(t *testing.T) {
		for _, text := range []string{"first", "second, which is longer"} {
			if err := put(writer, "a key/=%20", text); err != nil {
				t.Fatal(err)
			}
		}
		var got bytes.Buffer
		if err := reader.Get(ctx, "a key/=%20", &got, 5); err != nil || got.String() != "first" {
			t.Errorf("%q, %v", got.String(), err)
		}
		if err := reader.Get(ctx, "a key/=%20", &got, 4); !errors.Is(err, bucket.ErrTooLarge) {
			t.Error(err)
		}
		if err := reader.Get(ctx, "nothing", &got, 4); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("large", func(t *testing.T) {
		sent := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // more than one part of a multipart upload
		if err := writer.PutIfAbsent(ctx, "large", bytes.NewReader(sent), int64(len(sent))); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := reader.Get(ctx, "large", &got, int64(len(sent))); err != nil || !bytes.Equal(got.Bytes(), sent) {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
	})
	t.Run("pages", func(t *testing.T) {
		const many = 1100 // more than a page
		for i := range many {
			if err := put(writer, fmt.Sprintf("pages/%04d", i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		var keys []string
		all := func(o bucket.Object) bool { keys = append(keys, o.Key); return true }
		if err := reader.List(ctx, "pages/", all); err != nil || len(keys) != many || !slices.IsSorted(keys) ||
			keys[many-1] != "pages/1099" {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		keys = nil
		some := func(o bucket.Object) bool { keys = append(keys, o.Key); return len(keys) < 3 }
		if err := reader.List(ctx, "pages/", some); err != nil || len(keys) != 3 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
	open := func(name, key, secret string) *bucket.Bucket {
		b, err := buckettest.Open(t, "s3://"+name, server.Endpoint(), key, secret)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	list := func(b *bucket.Bucket) error { return b.List(ctx, "", func(bucket.Object) bool { return true }) }
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"key":    {put(open(buckettest.Name, "nobody", "x"), "k", "x"), "access key is not known there (Inv"},
		"secret": {put(open(buckettest.Name, buckettest.Writer, "x"), "k", "x"), "secret is not that of"},
		"rights": {put(reader, "k", "x"), "allow it s3:PutObject in s3://incidents/redis/"},
		"list":   {list(writer), "allow it s3:ListBucket"},
		"bucket": {list(open("no-such-bucket", "admin", "admin-secret")), `bucket "no-such-bucket" is not there`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}
