package capture_test

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

// repeated is a pcap file of microseconds that has the packets of another one many times, each time later.
type repeated struct {
	header, packets []byte
	at              []int   // offsets of packets
	times           []int64 // of packets, in microseconds since the first
	start, span     int64
	round, rounds   int
	rest            []byte
}

// realCapture is a capture in this repository, without compression.
func realCapture(b *testing.B, name string) []byte {
	b.Helper()
	f, err := os.Open(filepath.Join("../../../cmd/slowpath/testdata/captures", name))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// newRepeated repeats a file whose times go so many times faster.
func newRepeated(file []byte, rounds int, faster int64) *repeated {
	const header, ofPacket = 24, 16
	r := &repeated{header: file[:header], packets: file[header:], rounds: rounds}
	number := binary.LittleEndian.Uint32
	for at := 0; at < len(r.packets); at += ofPacket + int(number(r.packets[at+8:])) {
		us := int64(number(r.packets[at:]))*1e6 + int64(number(r.packets[at+4:]))
		if at == 0 {
			r.start = us
		}
		r.at, r.times = append(r.at, at), append(r.times, (us-r.start)/faster)
	}
	const pause = 1000
	r.span = r.times[len(r.times)-1] + pause
	return r
}

func (r *repeated) size() int { return len(r.packets) }

func (r *repeated) Seek(int64, int) (int64, error) {
	r.round, r.rest = 0, r.header
	return 0, nil
}

func (r *repeated) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.round == r.rounds {
			return 0, io.EOF
		}
		for i, at := range r.at {
			us := r.start + int64(r.round)*r.span + r.times[i]
			binary.LittleEndian.PutUint32(r.packets[at:], uint32(us/1e6))
			binary.LittleEndian.PutUint32(r.packets[at+4:], uint32(us%1e6))
		}
		r.rest = r.packets
		r.round++
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// BenchmarkRead reads a capture that has a real one b.N times, into a recording. It says how much of it per minute of
// CPU time, and the most memory that the process had, in MB.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name   string
		faster int64
	}{{"70 kB per second, one call of 8 is slow", 1}, {"1.4 MB per second, no call is slow", 20}} {
		b.Run(c.name, func(b *testing.B) {
			file := newRepeated(realCapture(b, "throttled-server.pcap.gz"), b.N, c.faster)
			b.SetBytes(int64(file.size()))
			rec, err := recording.Create(filepath.Join(b.TempDir(), "capture.slowpath"), recording.DefaultMaxDisk)
			if err != nil {
				b.Fatal(err)
			}
			before := cpuSeconds(b)
			b.ResetTimer()
			s, err := capture.Read(context.Background(), []capture.File{{Name: "x", ReadSeeker: file}},
				capture.Options{Version: "test"}, rec)
			if err != nil || len(s.Nodes) != 1 || s.Packets != int64(b.N*len(file.at)) {
				b.Fatalf("%+v, %v", s, err)
			}
			if err := rec.Close(); err != nil {
				b.Fatal(err)
			}
			perMinute := float64(b.N*file.size()) / 1e9 * 60 / (cpuSeconds(b) - before)
			b.ReportMetric(perMinute, "GB/CPU-min")
			b.ReportMetric(mostMemory(b), "MB")
		})
	}
}

// cpuSeconds is the CPU time of this process.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// mostMemory is the most that was resident of this process, in MB.
func mostMemory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseFloat(kb, 64)
	return n / 1e3
}
