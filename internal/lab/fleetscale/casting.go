package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logdata "go.opentelemetry.io/proto/otlp/logs/v1"
	metricdata "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"slowpath/internal/recording"
)

// part is who says what was recorded: the hosts of a cell, of which each has names and addresses of its own.
type part struct {
	cell, lap int
	cluster   string
	shift     int64 // nanoseconds between the recording and now
	rename    *strings.Replacer
}

// newPart gives a cell its names. Each hundred hosts are a cluster.
func (r recorded) newPart(cell, lap int, shift time.Duration) part {
	names := []string{r.network, fmt.Sprintf("10.%d.%d.", cell>>8, cell&255)}
	for _, h := range r.hosts {
		names = append(names, h, fmt.Sprintf("%s-%d", h, cell))
	}
	return part{
		cell: cell, lap: lap, cluster: fmt.Sprintf("shop-%d", cell*len(r.hosts)/100), shift: int64(shift),
		rename: strings.NewReplacer(names...),
	}
}

// own is an identifier that this part alone has, in place of another one.
func (p part) own(of []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %x", p.cell, p.lap, of))
}

// script is a push that many can make: what differs between them is set before it is sent.
type script struct {
	push
	message proto.Message
	host    string
	ip      string // its first address; empty: an older agent does not say it
	minutes bool   // it has slowpath.minute
	set     []func(part)
	calls   map[string]callKey // of the recording, by trace
	rows    []row
	fail    error
	using   sync.Mutex // of message
}

// callKey is what the trace of a call is made of.
type callKey struct {
	address, port string
	seq           int64
}

func (k callKey) ids(p part) (sum [sha256.Size]byte, ok bool) {
	return recording.CallID(p.cluster, recording.Call{
		Conn: net.JoinHostPort(p.rename.Replace(k.address), k.port), Seq: k.in(p),
	})
}

// in is the sequence number in a lap, further on than a connection sends in one: the same one would be the same call.
func (k callKey) in(p part) uint32 { return uint32(k.seq) + uint32(p.lap)<<24 }

// newScript reads a push. calls has the calls of all pushes before.
func newScript(of push, calls map[string]callKey) (*script, error) {
	s := &script{push: of, calls: calls}
	read := func(m proto.Message) error {
		s.message = m
		return proto.Unmarshal(of.Body, m)
	}
	var err error
	switch of.Signal {
	case traces:
		var m tracespb.ExportTraceServiceRequest
		err = read(&m)
		for _, r := range m.ResourceSpans {
			s.resource(r.GetResource().GetAttributes())
			for _, scope := range r.ScopeSpans {
				for _, span := range scope.Spans {
					s.span(span)
				}
			}
		}
	case metrics:
		var m metricspb.ExportMetricsServiceRequest
		err = read(&m)
		for _, r := range m.ResourceMetrics {
			s.resource(r.GetResource().GetAttributes())
			for _, scope := range r.ScopeMetrics {
				for _, metric := range scope.Metrics {
					s.metric(metric)
				}
			}
		}
	case logs:
		var m logspb.ExportLogsServiceRequest
		err = read(&m)
		for _, r := range m.ResourceLogs {
			s.resource(r.GetResource().GetAttributes())
			for _, scope := range r.ScopeLogs {
				for _, l := range scope.LogRecords {
					s.record(l)
				}
			}
		}
	default:
		err = fmt.Errorf("the signal %q is not known", of.Signal)
	}
	if s.fail != nil {
		err = s.fail
	}
	if err == nil && s.host == "" {
		err = fmt.Errorf("a push of %s has no host.name", of.Signal)
	}
	return s, err
}

// kept reports whether an agent sends it again when it is not taken: all but the cumulative metrics.
func (s *script) kept() bool { return s.Signal != metrics || s.minutes }

// body is the push as one of the part's.
func (s *script) body(p part) ([]byte, error) {
	s.using.Lock()
	defer s.using.Unlock()
	for _, set := range s.set {
		set(p)
	}
	return proto.Marshal(s.message)
}

func (s *script) text(t *string) {
	was := *t
	s.set = append(s.set, func(p part) { *t = p.rename.Replace(was) })
}

func (s *script) time(t *uint64) {
	if was := *t; was != 0 {
		s.set = append(s.set, func(p part) { *t = uint64(int64(was) + p.shift) })
	}
}

func (s *script) value(v *common.AnyValue) {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		s.text(&v.StringValue)
	case *common.AnyValue_ArrayValue:
		for _, one := range v.ArrayValue.Values {
			s.value(one)
		}
	}
}

func (s *script) attributes(all []*common.KeyValue) {
	for _, a := range all {
		n, isInt := a.GetValue().GetValue().(*common.AnyValue_IntValue)
		t, isText := a.GetValue().GetValue().(*common.AnyValue_StringValue)
		switch a.Key {
		case "slowpath.incident.version", "slowpath.entry.id":
			if isInt {
				was := n.IntValue
				s.set = append(s.set, func(p part) { n.IntValue = was + p.shift })
			}
		case "slowpath.tcp.seq":
			if isInt {
				was := callKey{seq: n.IntValue}
				s.set = append(s.set, func(p part) { n.IntValue = int64(was.in(p)) })
			}
		case "slowpath.incident.id":
			if isText {
				was := t.StringValue
				s.set = append(s.set, func(p part) { t.StringValue = fmt.Sprintf("%s-%d", was, p.lap) })
			}
		default:
			s.value(a.Value)
		}
	}
}

func (s *script) resource(all []*common.KeyValue) {
	s.host = textOf(all, "host.name")
	s.ip = textOf(all, "host.ip")
	for _, a := range all {
		t, isText := a.GetValue().GetValue().(*common.AnyValue_StringValue)
		switch {
		case !isText:
			s.value(a.Value)
		case a.Key == "slowpath.cluster":
			s.set = append(s.set, func(p part) { t.StringValue = p.cluster })
		case a.Key == "host.id", a.Key == "service.instance.id": // the hosts of a recording have one id
			was := []byte(t.StringValue + s.host)
			s.set = append(s.set, func(p part) {
				sum := part{cell: p.cell}.own(was)
				t.StringValue = hex.EncodeToString(sum[:16])
			})
		default:
			s.text(&t.StringValue)
		}
	}
}

func (s *script) span(span *trace.Span) {
	key := callKey{address: textOf(span.Attributes, "client.address")}
	port, _ := strconv.Atoi(textOf(span.Attributes, "client.port"))
	key.port = strconv.Itoa(port)
	key.seq, _ = strconv.ParseInt(textOf(span.Attributes, "slowpath.tcp.seq"), 10, 64)
	recorded := part{cluster: recordedCluster, rename: strings.NewReplacer()}
	if sum, ok := key.ids(recorded); ok {
		if string(sum[:16]) != string(span.TraceId) {
			s.fail = fmt.Errorf("the trace of %+v is %x, and an agent's %x", key, sum[:16], span.TraceId)
			return
		}
		s.calls[string(span.TraceId)] = key
	}
	side := textOf(span.Attributes, "slowpath.side")
	s.rows = append(s.rows, row{
		table: "call_row", key: fmt.Sprintf("%x %s", span.TraceId, side), trace: string(span.TraceId), side: side,
		sum: int64(span.EndTimeUnixNano - span.StartTimeUnixNano), laps: true,
	})
	s.traceID(&span.TraceId)
	atServer := len(span.ParentSpanId) > 0
	traceWas, idWas := string(span.TraceId), span.SpanId
	s.set = append(s.set, func(p part) {
		sum := s.idsOf(traceWas, p)
		if atServer {
			span.SpanId, span.ParentSpanId = sum[24:32:32], sum[16:24:24]
		} else if _, ok := s.calls[traceWas]; ok {
			span.SpanId = sum[16:24:24]
		} else {
			own := p.own(idWas)
			span.SpanId = own[:8:8]
		}
	})
	s.time(&span.StartTimeUnixNano)
	s.time(&span.EndTimeUnixNano)
	s.attributes(span.Attributes)
}

// recordedCluster is the --cluster-name of scripts/fleet-hosts.
const recordedCluster = "shop"

// idsOf are the ids of a call of the recording in a part.
func (s *script) idsOf(trace string, p part) [sha256.Size]byte {
	if key, ok := s.calls[trace]; ok {
		sum, _ := key.ids(p)
		return sum
	}
	return p.own([]byte(trace))
}

func (s *script) traceID(id *[]byte) {
	was := string(*id)
	if was == "" {
		return
	}
	s.set = append(s.set, func(p part) {
		sum := s.idsOf(was, p)
		*id = sum[:16:16]
	})
}

func (s *script) exemplars(all []*metricdata.Exemplar) {
	for _, e := range all {
		s.traceID(&e.TraceId)
		s.time(&e.TimeUnixNano)
		s.attributes(e.FilteredAttributes)
	}
}

func (s *script) metric(m *metricdata.Metric) {
	for _, d := range m.GetGauge().GetDataPoints() {
		s.number(d)
	}
	for _, d := range m.GetSum().GetDataPoints() {
		s.number(d)
	}
	for _, d := range m.GetHistogram().GetDataPoints() {
		s.time(&d.StartTimeUnixNano)
		s.time(&d.TimeUnixNano)
		s.attributes(d.Attributes)
		s.exemplars(d.Exemplars)
	}
	for _, d := range m.GetExponentialHistogram().GetDataPoints() {
		if m.Name == "slowpath.minute" {
			s.minutes = true
			s.rows = append(s.rows, row{
				table: "minute_row", at: int64(d.StartTimeUnixNano), sum: int64(d.Count),
				key: textOf(d.Attributes, "server.address") + textOf(d.Attributes, "server.port") +
					textOf(d.Attributes, "slowpath.whose"),
			})
		}
		s.time(&d.StartTimeUnixNano)
		s.time(&d.TimeUnixNano)
		s.attributes(d.Attributes)
		s.exemplars(d.Exemplars)
	}
}

func (s *script) number(d *metricdata.NumberDataPoint) {
	s.time(&d.StartTimeUnixNano)
	s.time(&d.TimeUnixNano)
	s.attributes(d.Attributes)
	s.exemplars(d.Exemplars)
}

func (s *script) record(l *logdata.LogRecord) {
	of := func(name string) string { return textOf(l.Attributes, name) }
	at := int64(l.TimeUnixNano)
	switch l.EventName {
	case "slowpath.incident":
		s.rows = append(s.rows, row{table: "incident_row", key: of("slowpath.incident.id"), laps: true})
	case "slowpath.finding":
		s.rows = append(s.rows, row{
			table: "finding_row", key: of("slowpath.incident.id") + " " + of("slowpath.rank"), laps: true,
		})
	case "slowpath.change":
		s.rows = append(s.rows, row{
			table: "change_row", at: at, key: of("slowpath.change.kind") + of("server.address") + textIn(l.Body),
		})
	case "slowpath.edge":
		n, _ := strconv.ParseInt(of("slowpath.calls"), 10, 64)
		s.rows = append(s.rows, row{
			table: "edge_row", sum: n, at: at,
			key: of("server.address") + " " + of("slowpath.client") + " " + of("slowpath.entry.id"),
		})
	}
	s.time(&l.TimeUnixNano)
	s.time(&l.ObservedTimeUnixNano)
	s.value(l.Body)
	s.attributes(l.Attributes)
}

// textOf is an attribute as a text, of an array the first one.
func textOf(all []*common.KeyValue, key string) string {
	for _, a := range all {
		if a.Key == key {
			return textIn(a.Value)
		}
	}
	return ""
}

func textIn(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *common.AnyValue_ArrayValue:
		if all := v.ArrayValue.GetValues(); len(all) > 0 {
			return textIn(all[0])
		}
	}
	return ""
}
