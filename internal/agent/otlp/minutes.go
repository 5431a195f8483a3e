package otlp

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/recording"
)

// What a minute has beside its calls: exact numbers, and from when on a call was slow.
const (
	thresholdKey = attribute.Key("slowpath.slow.threshold") // seconds
	completeKey  = attribute.Key("slowpath.complete")
	slowKey      = attribute.Key("slowpath.slow_calls")
	failedKey    = attribute.Key("slowpath.failed_calls")
	serverKey    = attribute.Key("slowpath.server") // "redis 7.2.4"
	kernelKey    = attribute.Key("slowpath.kernel") // of the host that sends it
)

// minuteMetrics are minutes of calls as delta histograms: slowpath.minute with all that is known of it, which is a row
// of a store and no series, and of users' calls db.client.operation.duration, as the semantic conventions have it.
func (e *Exporter) minuteMetrics(rows []incidents.Minute) []metricdata.ScopeMetrics {
	servers := recording.ParseServers(e.o.View.Meta(recording.MetaServers))
	kernel := kernelKey.String(text(e.o.View.Meta(recording.MetaKernel)))
	var minutes, operations []metricdata.ExponentialHistogramDataPoint[float64]
	for _, m := range rows {
		p, ok := minutePoint(m)
		if !ok {
			continue
		}
		of := []attribute.KeyValue{semconv.DBSystemNameRedis}
		if host, port, ok := split(m.Node); ok {
			of = append(of, semconv.ServerAddress(host), semconv.ServerPort(port))
		} else {
			of = append(of, semconv.ServerAddress(text(m.Node)))
		}
		if !m.Own {
			p.Attributes = attribute.NewSet(of...)
			operations = append(operations, p)
		}
		whose := whoseKey.String("users")
		if m.Own {
			whose = whoseKey.String("slowpath")
		}
		side := recording.Client
		if m.AtServer {
			side = recording.Server
		}
		p.Attributes = attribute.NewSet(append(of, whose, sideKey.String(side), kernel,
			serverKey.String(text(servers[m.Node].Server)),
			completeKey.Bool(m.Complete), slowKey.Int64(m.Slow),
			failedKey.Int64(m.Failed), thresholdKey.Float64(float64(m.ThresholdNs)/1e9))...)
		minutes = append(minutes, p)
	}
	metric := func(name, about string, p []metricdata.ExponentialHistogramDataPoint[float64]) metricdata.Metrics {
		return metricdata.Metrics{
			Name: name, Description: about, Unit: "s",
			Data: metricdata.ExponentialHistogram[float64]{Temporality: metricdata.DeltaTemporality, DataPoints: p},
		}
	}
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: "slowpath", Version: e.o.Version, SchemaURL: semconv.SchemaURL},
		Metrics: []metricdata.Metrics{
			metric("slowpath.minute", "Time of calls in a minute, from when they were due to their reply", minutes),
			metric("db.client.operation.duration", "Duration of database client operations.", operations),
		},
	}}
}

// minutePoint is the histogram of a minute; false where it has none.
func minutePoint(m incidents.Minute) (p metricdata.ExponentialHistogramDataPoint[float64], ok bool) {
	h, err := hdrhistogram.Decode(m.HDR)
	if err != nil || h.TotalCount() == 0 {
		return p, false
	}
	p = metricdata.ExponentialHistogramDataPoint[float64]{
		StartTime: time.Unix(m.Start, 0), Time: time.Unix(m.Start+60, 0), Scale: recording.ExponentialScale,
		Min: metricdata.NewExtrema(float64(h.Min()) / 1e9), Max: metricdata.NewExtrema(float64(m.MaxNs) / 1e9),
	}
	for _, b := range h.Distribution() {
		if b.Count <= 0 {
			continue
		}
		seconds := (float64(b.From) + float64(b.To)) / 2e9
		p.Count += uint64(b.Count)
		p.Sum += seconds * float64(b.Count)
		if seconds <= 0 {
			p.ZeroCount += uint64(b.Count)
			continue
		}
		at := recording.ExponentialBucket(seconds)
		if len(p.PositiveBucket.Counts) == 0 {
			p.PositiveBucket.Offset = at
		}
		for int(at-p.PositiveBucket.Offset) >= len(p.PositiveBucket.Counts) { // they come in order
			p.PositiveBucket.Counts = append(p.PositiveBucket.Counts, 0)
		}
		p.PositiveBucket.Counts[at-p.PositiveBucket.Offset] += uint64(b.Count)
	}
	return p, true
}
