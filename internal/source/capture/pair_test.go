package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"slowpath/internal/recording"
	"slowpath/internal/recording/join"
	"slowpath/internal/source/capture"
)

// toServer reports whether a packet of raw IPv4 is one of the client's.
func toServer(r record) bool { return binary.BigEndian.Uint16(r.data[22:]) == 6379 }

// atServerSide is a client's capture as it is at the server's: a path takes a time each way, some packets longer, and
// the clock is another one.
func (w *wire) atServerSide(way, clock time.Duration, longer map[int]time.Duration) *wire {
	far := &wire{t: w.t, link: w.link}
	for i, r := range w.all {
		d := way + longer[i]
		if !toServer(r) {
			d = -d
		}
		r.at = r.at.Add(d + clock)
		r.data = bytes.Clone(r.data)
		far.all = append(far.all, r)
	}
	slices.SortStableFunc(far.all, func(a, b record) int { return a.at.Compare(b.at) })
	return far
}

func (w *wire) file(name string) capture.File {
	return capture.File{Name: name, ReadSeeker: bytes.NewReader(w.pcap())}
}

// joined reads two captures and joins what they give.
func joined(t *testing.T, x, y []capture.File) (rec *recording.Recording, r join.Result, p capture.Pair, err error) {
	t.Helper()
	var paths [2]string
	var sinks [2]*recording.Writer
	for i := range sinks {
		paths[i] = filepath.Join(t.TempDir(), "capture.slowpath")
		if sinks[i], err = recording.Create(paths[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	if p, err = capture.Ends(context.Background(), x, y, capture.Options{Version: "test"}); err == nil {
		_, err = p.Read(context.Background(), sinks[0], sinks[1])
	}
	if err := errors.Join(err, sinks[0].Close(), sinks[1].Close()); err != nil {
		return nil, r, p, err
	}
	var all []*recording.Recording
	for _, path := range paths {
		one, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	rec, results, err := join.All(all, false)
	if err != nil {
		t.Fatal(err)
	}
	return rec, results[0], p, nil
}

// parts are the times of a call by whose they are.
func parts(rec *recording.Recording, c recording.Call) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, s := range rec.SegmentsOf(c.ID) {
		of := s.Actor
		if s.Actor == recording.Network && s.State != recording.Way {
			of += " " + s.State
		}
		out[of] += time.Duration(s.ToNs - s.FromNs)
	}
	return out
}

// TestPair: of two captures of the same calls, the parts of a slow call are told apart: the way there, the server, the
// way back. The clocks are another by an hour and drift, the captures are given in either order, and NAT has changed
// the client's address at the server.
func TestPair(t *testing.T) {
	const (
		way   = 100 * us
		clock = time.Hour + 123*ms
	)
	get, value := cmd("GET", "key"), "$5\r\nvalue\r\n"
	w := &wire{t: t, at: start, link: layers.LinkTypeRaw}
	longer := map[int]time.Duration{}
	f := w.dial(40001, 2*way, 10*us)
	quick := func() { f.calls(30, 2*way+50*us) }
	quick()
	f.call(get, value, 2*way+30*ms) // at the server
	w.wait(5 * us)
	f.ack(client)
	quick()
	longer[len(w.all)] = 20 * ms
	f.call(get, value, 2*way+20*ms+50*us) // on the way there
	w.wait(5 * us)
	f.ack(client)
	quick()
	longer[len(w.all)+1] = 25 * ms
	f.call(get, value, 2*way+25*ms+50*us) // on the way back
	w.wait(5 * us)
	f.ack(client)
	quick()
	far := w.atServerSide(way, clock, longer)
	for i := range far.all { // 20 ppm
		far.all[i].at = far.all[i].at.Add(far.all[i].at.Sub(far.all[0].at) / 50_000)
	}
	nat := &wire{t: t, link: w.link}
	for _, r := range far.all {
		at := 16 // destination
		if toServer(r) {
			at = 12
		}
		r.data = bytes.Clone(r.data)
		copy(r.data[at:], []byte{192, 0, 2, 33})
		nat.all = append(nat.all, r)
	}
	several := &wire{t: t, link: w.link}
	for _, r := range far.all { // of interfaces: the same packet again
		again := r
		again.at = r.at.Add(3 * us)
		several.all = append(several.all, r, again)
	}
	here, there := []capture.File{w.file("client.pcap")}, []capture.File{far.file("server.pcap")}
	for name, files := range map[string][2][]capture.File{
		"client first": {here, there}, "server first": {there, here}, "NAT": {here, {nat.file("server.pcap")}},
		"on all interfaces": {here, {several.file("server.pcap")}},
	} {
		t.Run(name, func(t *testing.T) {
			rec, r, p, err := joined(t, files[0], files[1])
			if err != nil {
				t.Fatal(err)
			}
			if p.Client[0].Name != "client.pcap" || p.Server[0].Name != "server.pcap" {
				t.Errorf("the client's is %s, the server's %s", p.Client[0].Name, p.Server[0].Name)
			}
			if r.Joined < 10 || r.Unmatched > 0 || r.Contradicted > 0 {
				t.Errorf("%+v", r)
			}
			if d := time.Duration(r.OffsetNs) - clock; d.Abs() > way+ms/10 || r.OffsetErrorNs > int64(2*way) {
				t.Errorf("the clock is off by %v, give or take %v", d, time.Duration(r.OffsetErrorNs))
			}
			calls := slow(rec)
			if len(calls) != 3 {
				t.Fatalf("%d slow calls", len(calls))
			}
			want := []string{recording.Server, "network out", "network back"}
			for i, c := range calls {
				took := parts(rec, c)
				if most := time.Duration(c.EndNs-c.StartNs) - 500*us; took[want[i]] < most || c.Side != "both" ||
					c.Conn != "10.0.0.7:40001" {
					t.Errorf("call %d of %s: %v, want %s at least %v", i, c.Conn, took, want[i], most)
				}
			}
		})
	}
}

// TestPairOfOtherTimes: calls that the server's capture does not have are counted, and said.
func TestPairOfOtherTimes(t *testing.T) {
	w := &wire{t: t, at: start, link: layers.LinkTypeRaw}
	f := w.dial(40001, ms, 10*us)
	for range 20 {
		f.calls(5, 10*ms)
	}
	far := w.atServerSide(ms/2, 0, nil)
	far.all = far.all[:len(far.all)/2]
	rec, r, _, err := joined(t, []capture.File{w.file("client.pcap")}, []capture.File{far.file("server.pcap")})
	if err != nil {
		t.Fatal(err)
	}
	spots := r.BlindSpots("client.pcap")
	if n := len(slow(rec)); r.Joined != n || r.Joined+r.Unmatched != 100 || r.Unmatched < 45 || len(spots) != 1 ||
		!strings.Contains(spots[0].Why, "the other capture does not have them") {
		t.Errorf("%d slow calls, %+v, %+v", n, r, spots)
	}
}

// TestPairRefused: captures that are not of the two ends say so.
func TestPairRefused(t *testing.T) {
	w, other := newWire(t), newWire(t)
	w.dial(40001, ms, us).calls(30, ms)
	f := other.flow(40001)
	f.seq, f.acked = [2]uint32{77, 99}, [2]uint32{99, 77}
	f.calls(30, ms)
	http := newWire(t)
	http.dial(40001, ms, ms).call("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", ms)
	for _, c := range []struct {
		a, b capture.File
		want error
	}{
		{w.file("a.pcap"), other.file("b.pcap"), capture.ErrNothingInCommon},
		{w.file("a.pcap"), w.file("b.pcap"), capture.ErrSamePlace},
		{w.file("a.pcap"), newWire(t).file("b.pcap"), capture.ErrNothingInCommon},
		{http.file("a.pcap"), http.file("b.pcap"), capture.ErrNoCalls},
	} {
		if _, _, _, err := joined(t, []capture.File{c.a}, []capture.File{c.b}); !errors.Is(err, c.want) {
			t.Errorf("error %v, want %v", err, c.want)
		}
	}
}

// TestRingOfFiles: the files of a ring are one capture, in whatever order they are given, and also where one is cut or
// empty. Files of two ends are two captures, also where their names differ in a number alone.
func TestRingOfFiles(t *testing.T) {
	w := &wire{t: t, at: start, link: layers.LinkTypeRaw}
	w.dial(40001, 200*us, 10*us).calls(300, 250*us)
	const each = 200
	var files []capture.File
	for i, rest := 0, w.all; len(rest) > 0; i++ {
		n := min(each, len(rest))
		part := &wire{t: t, link: w.link, all: rest[:n]}
		files, rest = append(files, part.file(fmt.Sprintf("ring-%05d.pcap", i))), rest[n:]
	}
	empty := newWire(t).file("ring-00099.pcap")
	slices.Reverse(files)
	found, err := capture.Captures(context.Background(), append(files, empty))
	if err != nil || len(found) != 1 || len(found[0]) != len(files)+1 || found[0][0].Name != "ring-00000.pcap" {
		t.Fatalf("%v, %v", found, err)
	}
	rec, s, err := readFiles(t, found[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := total(rec); n != 300 || s.Truncated != "" || int(s.Packets) != len(w.all) {
		t.Errorf("%d calls, %+v", n, s)
	}
	part := &wire{t: t, link: w.link, all: w.all[each : 2*each]}
	found[0][1] = capture.File{Name: "cut.pcap", ReadSeeker: bytes.NewReader(part.pcap()[:3000])}
	rec, s, err = readFiles(t, found[0])
	const why = "cut.pcap: the file is cut within a packet"
	if n := total(rec); err != nil || n < 200 || n >= 300 || s.Truncated != why {
		t.Errorf("%d calls, %+v, %v", n, s, err)
	}

	far := w.atServerSide(50*us, 0, nil)
	two, err := capture.Captures(context.Background(), []capture.File{w.file("host1.pcap"), far.file("host2.pcap")})
	if err != nil || len(two) != 2 {
		t.Errorf("two ends are %d captures, %v", len(two), err)
	}
	_, _, err = readFiles(t, []capture.File{w.file("a"), far.file("b")})
	if !errors.Is(err, capture.ErrOverlap) {
		t.Errorf("two ends read as one capture: %v", err)
	}
}
