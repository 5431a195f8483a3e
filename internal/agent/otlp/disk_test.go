package otlp_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/live"
	"slowpath/internal/recording"
)

// emptyDisk are the files of an agent that was never asked to send anything: all that is in them will be sent.
func emptyDisk(t *testing.T) *otlp.Disk {
	t.Helper()
	dir, err := folder.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, err := dir.Sub("incidents")
	if err != nil {
		t.Fatal(err)
	}
	store, err := incidents.Open(in, incidents.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	history, err := incidents.OpenHistory(dir, "history.sqlite", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = store.Close(), history.Close(), dir.Close() })
	return &otlp.Disk{Store: store, History: history, Folder: dir}
}

func addMinute(t *testing.T, d *otlp.Disk, at time.Time) {
	t.Helper()
	h := hdrhistogram.New(1, int64(time.Minute), 2)
	for i := range int64(1000) {
		_ = h.RecordValue(i * 10_000)
	}
	hdr, err := recording.EncodeHistogram(h)
	if err == nil {
		err = d.History.Add(incidents.Minute{
			Start: at.Unix() / 60 * 60, Node: "10.0.0.1:6379", Calls: 1000, Slow: 500, Failed: 3, MaxNs: h.Max(),
			ThresholdNs: int64(5 * time.Millisecond), Complete: true, HDR: hdr,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keptCalls are calls that a ring has.
type keptCalls struct {
	mu  sync.Mutex
	all []live.SlowCall
}

func (k *keptCalls) add(c recording.Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, live.SlowCall{Whose: live.Users, Call: c})
}

func (k *keptCalls) between(_ context.Context, from, to time.Time) (in []live.SlowCall, _ uint64, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.all {
		if c.Call.EndNs >= from.UnixNano() && c.Call.EndNs < to.UnixNano() {
			in = append(in, c)
		}
	}
	return in, 0, nil
}

// TestOutage: calls, minutes and incidents of a time in which the collector does not take anything, and in which the
// agent is started again, are sent once it does; each of them once.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := emptyDisk(t)
		var away atomic.Bool
		minutes, versions, spans := map[string]int{}, map[string]int{}, map[string]*tracepb.Span{}
		clock, ring := &hand{}, &keptCalls{}
		view, began := live.New(live.Options{Clock: clock}), time.Now()
		disk.Calls, disk.First = ring.between, func() time.Time { return began }
		to := inMemory(t, otlp.Files{}, func(w http.ResponseWriter, r *http.Request) {
			if away.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			b, _ := io.ReadAll(z)
			switch {
			case strings.HasSuffix(r.URL.Path, "/v1/metrics"):
				countMinutes(t, b, minutes)
			case strings.HasSuffix(r.URL.Path, "/v1/logs"):
				countVersions(t, b, versions)
			case strings.HasSuffix(r.URL.Path, "/v1/traces"):
				addSpans(t, b, spans)
			}
		})
		o := otlp.Options{Endpoint: to, View: view, Disk: disk}
		_, log, stop := started(t, o)
		var first string
		for i := range 30 {
			away.Store(i >= 5 && i < 25)
			addMinute(t, disk, time.Now())
			err := disk.History.AddEntries([]incidents.Entry{
				{Edge: &incidents.Edge{Caller: "app[7]", Unit: "shop.service", Node: "a:1", Calls: int64(i) + 1}},
				{Change: &incidents.Change{Kind: "setting", Text: fmt.Sprint("CONFIG SET maxclients ", i)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now().UnixNano()
			clock.Store(now)
			for k := range 3 {
				c := recording.Call{
					Source: recording.SourceTap, Op: "GET", Conn: "10.0.0.1:40000", Node: "10.0.0.9:6379",
					Side: recording.Client, Seq: uint32(100*i + k + 1),
					IntendedNs: now - 20e6, StartNs: now - 20e6, EndNs: now,
				}
				view.Call(c)
				ring.add(c)
			}
			if i%10 == 2 {
				in, err := disk.Store.Begin("slow calls", "10.0.0.1:6379", time.Now())
				if err != nil {
					t.Fatal(err)
				}
				first = in.ID
			}
			if i%10 == 7 {
				if err := disk.Store.Fail(first, "there is no recording"); err != nil {
					t.Fatal(err)
				}
			}
			if i == 15 {
				stop()
				_, log, stop = started(t, o)
			}
			<-time.After(time.Minute)
		}
		<-time.After(time.Minute)
		stop()
		const versionsSent, entries = 5, 60 // one incident began and failed meanwhile
		if len(minutes) != 30 || len(versions) != versionsSent+entries {
			t.Errorf("%d minutes, %d versions of incidents and entries were sent", len(minutes), len(versions))
		}
		if len(spans) != 3*30 {
			t.Errorf("%d of 90 calls were sent", len(spans))
		}
		for what, n := range minutes {
			if n != 1 {
				t.Errorf("the minute %s was sent %d times", what, n)
			}
		}
		for what, n := range versions {
			if n != 1 {
				t.Errorf("%s was sent %d times", what, n)
			}
		}
		if !strings.Contains(log.text(), "takes minutes again; those that are still kept are sent now") {
			t.Error(log.text())
		}
	})
}

// TestRefusedPush: what a collector never takes is given up, and holds up nothing that comes after it.
func TestRefusedPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := emptyDisk(t)
		var pushes atomic.Int64
		to := inMemory(t, otlp.Files{}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/v1/metrics") && pushes.Add(1) == 1 {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		view := live.New(live.Options{Clock: &hand{}})
		e, log, stop := started(t, otlp.Options{Endpoint: to, View: view, Disk: disk})
		for range 3 {
			addMinute(t, disk, time.Now())
			<-time.After(time.Minute)
		}
		<-time.After(time.Minute)
		stop()
		if _, _, minutes, _ := e.Stats(); minutes.Sent != 2 || minutes.Failed != 1 {
			t.Errorf("%+v", minutes)
		}
		if !strings.Contains(log.text(), "takes minutes again; 1 were lost") {
			t.Error(log.text())
		}
	})
}

// countMinutes counts the minutes of a request. All are as addMinute makes them.
func countMinutes(t *testing.T, body []byte, into map[string]int) {
	var request metricspb.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	names := map[string]int{}
	for _, rm := range request.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				for _, p := range m.GetExponentialHistogram().GetDataPoints() {
					names[m.Name]++
					if m.Name != "slowpath.minute" {
						continue
					}
					sum := p.ZeroCount
					for _, n := range p.Positive.BucketCounts {
						sum += n
					}
					about := attributesOf(p.Attributes)
					if sum != 1000 || p.Count != 1000 || p.GetSum() < 4.9 || p.GetSum() > 5.1 ||
						about["slowpath.slow_calls"] != "500" || about["slowpath.failed_calls"] != "3" ||
						about["slowpath.complete"] != "true" || about["slowpath.slow.threshold"] != "0.005" ||
						about["server.address"] != "10.0.0.1" {
						t.Errorf("a minute is %v", p)
					}
					into[fmt.Sprint(p.StartTimeUnixNano)]++
				}
			}
		}
	}
	if names["slowpath.minute"] != names["db.client.operation.duration"] {
		t.Errorf("%v", names)
	}
}

// countVersions counts the versions of incidents, and the edges and changes, of a request.
func countVersions(t *testing.T, body []byte, into map[string]int) {
	var request logspb.ExportLogsServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	for _, rl := range request.ResourceLogs {
		for _, sl := range rl.ScopeLogs {
			for _, r := range sl.LogRecords {
				about := attributesOf(r.Attributes)
				if !map[string]bool{
					"slowpath.incident": about["slowpath.incident.state"] != "",
					"slowpath.edge":     about["slowpath.client"]+about["slowpath.client.unit"] == "app[7]shop.service",
					"slowpath.change":   about["slowpath.change.kind"] == "setting",
				}[r.EventName] {
					t.Errorf("an event is %v", r)
				}
				into[about["slowpath.incident.id"]+" "+about["slowpath.incident.version"]+about["slowpath.entry.id"]]++
			}
		}
	}
}

func attributesOf(all []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			out[a.Key] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			out[a.Key] = fmt.Sprint(v.DoubleValue)
		}
	}
	return out
}
