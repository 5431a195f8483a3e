//go:build linux

// Package buckettest starts a real S3 server for tests: SeaweedFS, which scripts/seaweedfs installs.
package buckettest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"slowpath/internal/bucket"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

var program = func() string {
	cache, _ := os.UserCacheDir() // without one, nothing matches
	return filepath.Join(cache, "slowpath", "seaweedfs", "4.48", "bin", "weed")
}()

// Need is the server.
var Need = needs.File("SeaweedFS", program, "scripts/seaweedfs installs it")

// Name is that of the bucket of a server.
const Name = "incidents"

// Keys of a server: their secret is the key and "-secret".
const (
	Writer = "writer" // may write into the bucket, and nothing else
	Reader = "reader" // may list and read it
	admin  = "admin"
)

// Server is one with an empty bucket, on loopback alone.
type Server struct {
	t     testing.TB
	dir   string
	ports [8]int // master, volume, filer and S3, each with that of its gRPC
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a server until the end of a test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	for i := range s.ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are chosen, so that they differ
		s.ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	type identity struct {
		Name        string              `json:"name"`
		Credentials []map[string]string `json:"credentials"`
		Actions     []string            `json:"actions"`
	}
	who := func(key string, actions ...string) identity {
		return identity{key, []map[string]string{{"accessKey": key, "secretKey": key + "-secret"}}, actions}
	}
	config, err := json.Marshal(map[string]any{"identities": []identity{
		who(admin, "Admin"), who(Writer, "Write:"+Name), who(Reader, "Read:"+Name, "List:"+Name),
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "s3.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Stop()
		}
	})
	return s
}

// Endpoint is its address.
func (s *Server) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.ports[6]) }

// Up starts it, or starts it again with what it has.
func (s *Server) Up() {
	s.t.Helper()
	p := func(i int) string { return strconv.Itoa(s.ports[i]) }
	s.cmd = exec.Command(program, "server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir="+s.dir,
		"-master.telemetry=false", "-master.electionTimeout=1s", "-volume.max=60", "-master.volumeSizeLimitMB=64",
		"-s3.config="+s.dir+"/s3.json", "-s3.iam=false", "-master.port="+p(0), "-master.port.grpc="+p(1),
		"-volume.port="+p(2), "-volume.port.grpc="+p(3), "-filer.port="+p(4), "-filer.port.grpc="+p(5),
		"-s3.port="+p(6), "-s3.port.grpc="+p(7), "-s3.port.iceberg=0", "-s3.port.lance=0")
	var said bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &said, &said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Dir = s.dir
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(s.cmd, s.ended)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%.8000s", said.String())
		}
	})
	client, err := minio.New(fmt.Sprintf("127.0.0.1:%d", s.ports[6]), &minio.Options{
		Creds: credentials.NewStaticV4(admin, admin+"-secret", ""), Region: "us-east-1", MaxRetries: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	await.Until(s.t, "the S3 server has its bucket and takes an object", func() bool {
		ctx := context.Background()
		_ = client.MakeBucket(ctx, Name, minio.MakeBucketOptions{}) // it may be there
		_, err := client.PutObject(ctx, Name, "ready", bytes.NewReader([]byte("1")), 1, minio.PutObjectOptions{})
		return err == nil && client.RemoveObject(ctx, Name, "ready", minio.RemoveObjectOptions{}) == nil
	})
}

// Stop kills it: in good order, it takes 25 s.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
}

// Bucket opens its bucket with a key.
func (s *Server) Bucket(key string) *bucket.Bucket {
	s.t.Helper()
	b, err := Open(s.t, "s3://"+Name+"/redis", s.Endpoint(), key, key+"-secret")
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// Open opens a bucket with a key of a file.
func Open(t testing.TB, address, endpoint, key, secret string) (*bucket.Bucket, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", key, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return bucket.Open(address, bucket.Options{Endpoint: endpoint, Credentials: file, Flags: "--recordings"})
}
