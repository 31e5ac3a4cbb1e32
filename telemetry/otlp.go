package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// traces is the request that exports spans: an ExportTraceServiceRequest.
func traces(spans []sdktrace.ReadOnlySpan) message {
	all := make([]message, len(spans))
	for i, s := range spans {
		all[i] = spanMessage(s)
	}
	return message{{1, "resourceSpans", []message{{
		{1, "resource", resourceMessage(spans[0].Resource()), true},
		{2, "scopeSpans", []message{{{1, "scope", scopeMessage(spans[0].InstrumentationScope()), true}, {2, "spans", all, false}}}, false},
	}}, false}}
}

func resourceMessage(r *resource.Resource) message {
	return message{{1, "attributes", keyValues(r.Attributes()), false}}
}

func scopeMessage(s instrumentation.Scope) message {
	return message{{1, "name", s.Name, false}, {2, "version", s.Version, false}}
}

func spanMessage(s sdktrace.ReadOnlySpan) message {
	c := s.SpanContext()
	traceID, spanID := c.TraceID(), c.SpanID()
	m := message{
		{1, "traceId", id(traceID[:]), false}, {2, "spanId", id(spanID[:]), false}, {3, "traceState", c.TraceState().String(), false},
	}
	if above := s.Parent().SpanID(); above.IsValid() {
		m = append(m, field{4, "parentSpanId", id(above[:]), false})
	}
	return append(m,
		field{5, "name", s.Name(), false}, field{6, "kind", number(s.SpanKind()), false},
		field{7, "startTimeUnixNano", nanos(s.StartTime()), false}, field{8, "endTimeUnixNano", nanos(s.EndTime()), false},
		field{9, "attributes", keyValues(s.Attributes()), false},
		field{15, "status", statusMessage(s.Status()), true})
}

func statusMessage(s sdktrace.Status) message {
	return message{{2, "message", s.Description, false}, {3, "code", number(statusCode(s.Code)), false}}
}

// statusCode is a status as OTLP numbers it, which is not as the library does.
func statusCode(c codes.Code) int {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

func nanos(t time.Time) fixed {
	if t.IsZero() {
		return 0
	}
	return fixed(t.UnixNano())
}

func keyValues(kvs []attribute.KeyValue) []message {
	out := make([]message, len(kvs))
	for i, kv := range kvs {
		out[i] = message{{1, "key", string(kv.Key), false}, {2, "value", anyValue(kv.Value), true}}
	}
	return out
}

func anyValue(v attribute.Value) message {
	switch v.Type() {
	case attribute.BOOL:
		return message{{2, "boolValue", v.AsBool(), true}}
	case attribute.INT64:
		return message{{3, "intValue", integer(v.AsInt64()), true}}
	case attribute.FLOAT64:
		return message{{4, "doubleValue", double(v.AsFloat64()), true}}
	case attribute.STRINGSLICE:
		var all []message
		for _, s := range v.AsStringSlice() {
			all = append(all, message{{1, "stringValue", s, true}})
		}
		return message{{5, "arrayValue", message{{1, "values", all, false}}, true}}
	}
	return message{{1, "stringValue", v.String(), true}}
}

// metrics is the request that exports metrics: an ExportMetricsServiceRequest.
func metrics(rm *metricdata.ResourceMetrics) message {
	var scopes []message
	for _, sm := range rm.ScopeMetrics {
		var all []message
		for _, m := range sm.Metrics {
			all = append(all, metricMessage(m))
		}
		scopes = append(scopes, message{{1, "scope", scopeMessage(sm.Scope), true}, {2, "metrics", all, false}})
	}
	return message{{1, "resourceMetrics", []message{{{1, "resource", resourceMessage(rm.Resource), true}, {2, "scopeMetrics", scopes, false}}}, false}}
}

// cumulative is how the histograms of this package count: since the beginning.
const cumulative = number(2)

func metricMessage(m metricdata.Metrics) message {
	var points []message
	switch h := m.Data.(type) {
	case metricdata.Histogram[int64]:
		for _, p := range h.DataPoints {
			points = append(points, pointMessage(p))
		}
	case metricdata.Histogram[float64]:
		for _, p := range h.DataPoints {
			points = append(points, pointMessage(p))
		}
	}
	return message{
		{1, "name", m.Name, false}, {2, "description", m.Description, false}, {3, "unit", m.Unit, false},
		{9, "histogram", message{{1, "dataPoints", points, false}, {2, "aggregationTemporality", cumulative, false}}, true},
	}
}

func pointMessage[N int64 | float64](p metricdata.HistogramDataPoint[N]) message {
	m := message{
		{2, "startTimeUnixNano", nanos(p.StartTime), false}, {3, "timeUnixNano", nanos(p.Time), false},
		{4, "count", fixed(p.Count), false}, {5, "sum", double(p.Sum), true},
		{6, "bucketCounts", counts(p.BucketCounts), false}, {7, "explicitBounds", bounds(p.Bounds), false},
		{9, "attributes", keyValues(p.Attributes.ToSlice()), false},
	}
	if v, ok := p.Min.Value(); ok {
		m = append(m, field{11, "min", double(v), true})
	}
	if v, ok := p.Max.Value(); ok {
		m = append(m, field{12, "max", double(v), true})
	}
	return m
}
