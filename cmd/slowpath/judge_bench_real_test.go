//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
)

var keepRecordings = flag.String("keep", "", "BenchmarkJudge: `directory` in which its recordings stay, and are used "+
	"again")

// syntheticRecording is the command in which BenchmarkJudge writes a recording: apart from the benchmark, since the
// peak memory of a process counts for those that it starts.
const syntheticRecording = "synthetic-recording"

// watchSize is the size of a synthetic recording. Its rows are like those of a real watch of one server with all
// sources: which, and how many of each, was read from recordings of 3 000 and 8 000 connections.
type watchSize struct {
	seconds        int
	conns          int // that are open all the time; each is used about once per second
	callsPerSecond int // in histograms
	connects       int // per second; each is closed again
	slowPerSecond  int // calls of users
	worksPerSecond int // what the main thread did for 0.2 ms and more, every fourth for more than 1 ms
}

// day has, rounded, 1e8 calls in histograms, 1e6 slow calls and 1e6 connects.
var watches = map[string]watchSize{
	"small":             {2, 20, 100, 5, 5, 5}, // for tests
	"connections=1000":  {30, 1000, 10_000, 100, 100, 50},
	"connections=8000":  {30, 8000, 30_000, 300, 300, 100},
	"connections=20000": {30, 20_000, 60_000, 500, 500, 200},
	"day":               {86_400, 100, 1160, 12, 12, 3},
}

// BenchmarkJudge is what `slowpath doctor FILE` takes for recordings of watches of many connections, and for that of a
// day: CPU time of the process and its peak memory.
func BenchmarkJudge(b *testing.B) {
	for _, name := range []string{"connections=1000", "connections=8000", "connections=20000", "day"} {
		b.Run(name, func(b *testing.B) {
			if name == "day" && *keepRecordings == "" {
				b.Skip("takes 1.5 GB of disk and minutes to write: give -keep DIRECTORY")
			}
			path := recordingOf(b, name)
			var cpu time.Duration
			var peakKiB int64
			for b.Loop() {
				c := exec.Command("slowpath", "doctor", path)
				out, err := c.CombinedOutput()
				if code := c.ProcessState.ExitCode(); code > cli.ExitFindings {
					b.Fatalf("exit code %d, %v: %s", code, err, out)
				}
				cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
				peakKiB = max(peakKiB, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(peakKiB)/1024, "peak-MiB")
		})
	}
}

// recordingOf is the path of a synthetic recording.
func recordingOf(b *testing.B, name string) string {
	dir := *keepRecordings
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, name+".slowpath")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return path
	}
	if out, err := exec.Command(syntheticRecording, path, name).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// writeSynthetic is the command syntheticRecording PATH NAME.
func writeSynthetic() error {
	path, size := os.Args[1], watches[os.Args[2]]
	w, err := recording.Create(path, 16<<30)
	if err != nil {
		return err
	}
	s := &synthesis{Writer: w, watchSize: size, rand: rand.New(rand.NewPCG(1, 2))}
	if err := s.write(); err != nil {
		return err
	}
	return w.Close()
}

// synthesis writes a synthetic recording, second by second.
type synthesis struct {
	*recording.Writer
	watchSize
	rand *rand.Rand
	port int // of the connection that was made last
}

const (
	syntheticNode  = "10.0.0.5:6379"
	syntheticStart = int64(1_800_000_000e9)
	serverTID      = 900
	processes      = 8 // of callers
)

func (s *synthesis) write() error {
	s.meta()
	var clients bytes.Buffer
	for i := range s.conns {
		s.connection(i)
		fmt.Fprintf(&clients,
			`{"id":"%d","addr":"%s","name":"","age":"100","idle":"0","flags":"N","cmd":"get","lib-name":""}`+
				"\n", i, address(i))
	}
	s.snapshot(syntheticStart, recording.SourceServer, syntheticNode, "clients", clients.String())
	for second := range s.seconds {
		at := syntheticStart + int64(second)*1e9
		s.server(at, second)
		s.histograms(at)
		s.uses(at, second)
		for i := range s.connects {
			s.connect(at + int64(i)*1e9/int64(s.connects))
		}
		for i := range s.worksPerSecond {
			s.work(at+int64(i)*1e9/int64(s.worksPerSecond), i%4 == 0)
		}
		for i := range s.slowPerSecond {
			s.slowCall(at + int64(i)*1e9/int64(s.slowPerSecond))
		}
		if err := s.Flush(); err != nil { // its queue drops what comes too fast
			return err
		}
	}
	return nil
}

func (s *synthesis) meta() {
	for key, value := range map[string]string{
		recording.MetaStart:  fmt.Sprint(syntheticStart),
		recording.MetaEnd:    fmt.Sprint(syntheticStart + int64(s.seconds)*1e9),
		recording.MetaTarget: syntheticNode, recording.MetaNodes: `["` + syntheticNode + `"]`,
		recording.MetaKind: "standalone", recording.MetaServer: "redis 7.0.15", recording.MetaSlow: "auto",
		recording.MetaProbeRate: "50",
	} {
		s.SetMeta(key, value)
	}
	for _, source := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost, recording.SourceTap,
	} {
		s.SetMeta(recording.MetaSource+source, recording.Detail(recording.SourceStatus{Name: source, Used: true}))
	}
}

// address is that of a client's connection.
func address(i int) string {
	return fmt.Sprintf("10.%d.0.%d:%d", 1+i/50_000, 1+i%processes, 10_000+i%50_000)
}

func callerOf(i int) (pid int, comm string) { return 1000 + i%processes, "app" }

func (s *synthesis) snapshot(at int64, source, subject, name, body string) {
	s.Snapshot(recording.Snapshot{TimeNs: at, Source: source, Subject: subject, Name: name, Body: body})
}

// connection is one that is open all the time.
func (s *synthesis) connection(i int) {
	subject, ends := recording.ConnPrefix+address(i), recording.ConnEnds{Node: syntheticNode}
	s.snapshot(syntheticStart, recording.SourceTap, subject, recording.SnapshotServed, recording.Detail(ends))
	ends.PID, ends.Comm = callerOf(i)
	ends.Nagle = recording.NagleOff
	s.snapshot(syntheticStart, recording.SourceTap, subject, recording.SnapshotEnds, recording.Detail(ends))
	if i%8192 == 0 {
		_ = s.Flush() // Close tells
	}
}

// server is what the server and its host report each second, and the calls of the probe.
func (s *synthesis) server(at int64, second int) {
	if s.seconds > 3600 && second%10 != 0 {
		return // the limit of the file leaves a part of these
	}
	for i := range 100 {
		name := fmt.Sprintf("field_%d", i)
		if i < 20 {
			name = fmt.Sprintf("cmdstat_command%d.calls", i)
		}
		s.sample(at, recording.SourceServer, syntheticNode, name, float64(second*i))
	}
	for i := range 10 {
		s.sample(at, recording.SourceHost, syntheticNode, fmt.Sprintf("net.counter%d", i), float64(second*i))
		s.sample(at, recording.SourceHost, recording.SubjectMachine, fmt.Sprintf("cpu.%d.busy_ns", i),
			float64(second)*1e8)
	}
	s.sample(at, recording.SourceHost, syntheticNode, "main.run_ns", float64(second)*5e8)
	s.sample(at, recording.SourceHost, syntheticNode, "main.delay_ns", float64(second)*1e7)
	s.event(at, 2e6, recording.SourceServer, syntheticNode, recording.KindPoll, "{}")
	for i := range 50 {
		due := at + int64(i)*20e6
		s.Call(recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: "PING", ArgCount: 1, RequestBytes: 14, ReplyBytes: 7,
			IntendedNs: due, StartNs: due + 50e3, EndNs: due + 200e3 + s.rand.Int64N(100e3), Node: syntheticNode,
			Slot: -1,
		})
	}
}

func (s *synthesis) sample(at int64, source, subject, name string, value float64) {
	s.Sample(recording.Sample{TimeNs: at, Source: source, Subject: subject, Name: name, Value: value})
}

func (s *synthesis) event(at, ns int64, source, subject, kind, detail string) {
	s.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: source, Subject: subject, Kind: kind, Detail: detail,
	})
}

// histograms are the latencies of all calls of a second, at both ends.
func (s *synthesis) histograms(at int64) {
	for _, op := range []string{"GET", "SET"} {
		h := hdrhistogram.New(1000, 3600e9, 2)
		for range min(s.callsPerSecond/2, 2000) {
			_ = h.RecordValues(50e3+int64(s.rand.ExpFloat64()*50e3), int64(max(1, s.callsPerSecond/4000)))
		}
		for range s.slowPerSecond / 2 {
			_ = h.RecordValue(6e6 + s.rand.Int64N(4e6))
		}
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			panic(err)
		}
		for _, side := range []string{recording.Server, recording.Client} {
			s.Histogram(recording.Histogram{
				Second: at / 1e9, Source: recording.SourceTap, Node: syntheticNode, Op: side + " " + op, HDR: hdr,
			})
		}
	}
}

// uses are the samples of the connections in one second.
func (s *synthesis) uses(at int64, second int) {
	n := int64(second + 1)
	for i := range s.conns {
		if s.conns == 100 && (second+i)%100 != 0 {
			continue // of a day, the limit of the file leaves few
		}
		s.ConnUse(address(i), recording.ConnUse{
			TimeNs: at + int64(i)*1e9/int64(s.conns), Calls: n * 2, InFlightNs: n * 300e3, IdleNs: n * 900e6,
			Turns: n * 2, WaitedNs: n * 10e3, WaitedMaxNs: 20e3, Served: 2,
		})
		if i%4096 == 0 {
			_ = s.Flush()
		}
	}
}

// connect is a connection that is made, used for one call, and closed.
func (s *synthesis) connect(at int64) {
	s.port++
	d := recording.ConnDetail{Client: address(s.conns + s.port%100_000), Side: recording.Client, DialNs: 30e3}
	d.PID, d.Comm = callerOf(s.port)
	s.event(at, 0, recording.SourceTap, syntheticNode, recording.KindOpen, recording.Detail(d))
	s.event(at-30e3, 400e3, recording.SourceTap, syntheticNode, recording.KindHandshake,
		recording.Detail(recording.HandshakeDetail{
			Client: d.Client, PID: d.PID, Comm: d.Comm, Side: d.Side, DialNs: d.DialNs, Ops: []string{"SELECT"},
			RoundTrips: 1, IdleNs: 20e3, Op: "GET", Bytes: 24,
		}))
	d.AgeNs, d.IdleNs, d.Calls, d.InFlightNs = 900e3, 100e3, 2, 300e3
	d.By, d.Nagle = recording.Client, recording.NagleOff
	s.event(at+900e3, 0, recording.SourceTap, syntheticNode, recording.KindClose, recording.Detail(d))
}

// work is what the main thread did, with a wait for a CPU of it and one of a caller.
func (s *synthesis) work(at int64, long bool) {
	ns := int64(250e3)
	if long {
		ns = 1e6 + s.rand.Int64N(1e6)
	}
	client := s.rand.IntN(s.conns)
	s.event(at, ns, recording.SourceTap, syntheticNode, recording.KindActivity,
		recording.Detail(recording.ActivityDetail{
			Op: "HGETALL", Calls: 1, Args: 2, Bytes: 30, Client: address(client), TID: serverTID, OnCPUNs: ns,
		}))
	thread := recording.ThreadDetail{TID: serverTID, Share: 1}
	s.event(at+ns, 100e3, recording.SourceTap, syntheticNode, recording.KindRunQueue, recording.Detail(thread))
	thread.TID, _ = callerOf(client)
	s.event(at+ns, 100e3, recording.SourceTap, fmt.Sprintf("%s%d", recording.ProcessPrefix, thread.TID),
		recording.KindRunQueue, recording.Detail(thread))
}

// slowCall is a call of a user that waited for the server and for its own thread.
func (s *synthesis) slowCall(at int64) {
	i := s.rand.IntN(s.conns)
	pid, comm := callerOf(i)
	ns := int64(6e6) + s.rand.Int64N(4e6)
	c := recording.Call{
		Source: recording.SourceTap, Conn: address(i), Op: "GET", ArgCount: 2, RequestBytes: 24, ReplyBytes: 5,
		IntendedNs: at, StartNs: at, EndNs: at + ns, Node: syntheticNode, Slot: -1, Side: "both",
		Client: fmt.Sprintf("%s[%d]", comm, pid), Seq: s.rand.Uint32(),
	}
	parts := []recording.Segment{
		{Actor: recording.Server, State: recording.RunQueue, Culprit: "other[77]"},
		{Actor: recording.Server, State: recording.Busy},
		{Actor: recording.Server, State: recording.RunQueue, Culprit: "other[77]"},
		{Actor: recording.Server, State: recording.Busy, Culprit: "its own work"},
		{Actor: recording.Server, State: recording.Exec},
		{Actor: recording.Server, State: recording.Busy, Culprit: "its own work"},
		{Actor: recording.Client, State: recording.RunQueue, Culprit: "app[1001]"},
		{Actor: recording.Client, State: recording.Receive},
	}
	for k := range parts {
		parts[k].FromNs = at + ns*int64(k)/int64(len(parts))
		parts[k].ToNs = at + ns*int64(k+1)/int64(len(parts))
	}
	s.Call(c, parts...)
}
