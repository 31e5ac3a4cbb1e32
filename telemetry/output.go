package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// output is where telemetry goes: a file or a server.
type output struct {
	cfg    Config
	client *http.Client

	mu     sync.Mutex
	file   *os.File // nil: to a server
	warned time.Time
}

func newOutput(cfg Config) (*output, error) {
	o := &output{cfg: cfg, client: &http.Client{Timeout: cfg.Timeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}}}
	for _, to := range []string{cfg.TracesURL, cfg.MetricsURL} {
		if u, err := url.Parse(to); err != nil || to != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			shown := "the endpoint" // which may have a password in it
			if err == nil {
				shown = u.Redacted()
			}
			return nil, fmt.Errorf("telemetry: %s is no HTTP URL: check OTEL_EXPORTER_OTLP_ENDPOINT", shown)
		}
	}
	if cfg.File == "" {
		return o, nil
	}
	if err := os.MkdirAll(filepath.Dir(cfg.File), 0o700); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	f, err := os.OpenFile(cfg.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	o.file = f
	return o, nil
}

func (o *output) close() error {
	o.client.CloseIdleConnections()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// warn logs a failure, at most once a minute.
func (o *output) warn(err error) {
	o.mu.Lock()
	due := time.Since(o.warned) > time.Minute
	if due {
		o.warned = time.Now()
	}
	o.mu.Unlock()
	if due {
		o.cfg.Logger.Warn("telemetry is not exported", "error", err)
	}
}

// send exports by OTLP/HTTP.
func (o *output) send(ctx context.Context, to string, m message) error {
	body, kind := []byte(nil), "application/x-protobuf"
	if o.cfg.JSON {
		body, kind = m.json(nil), "application/json"
	} else {
		body = m.protobuf(nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, v := range o.cfg.Headers {
		req.Header.Set(name, v)
	}
	req.Header.Set("Content-Type", kind)
	resp, err := o.client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered HTTP %d", resp.StatusCode)
	}
	return nil
}

// plain is an error without the URL, which may have a key in it.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// write adds lines to the file.
func (o *output) write(lines []any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.file.Write(b.Bytes())
	return err
}

// spanExporter exports spans.
type spanExporter struct{ o *output }

// ExportSpans implements sdktrace.SpanExporter, as Shutdown does.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	var err error
	if e.o.file == nil {
		err = e.o.send(ctx, e.o.cfg.TracesURL, traces(spans))
	} else {
		lines := make([]any, len(spans))
		for i, s := range spans {
			lines[i] = spanLine(s)
		}
		err = e.o.write(lines)
	}
	if err != nil {
		e.o.warn(err)
	}
	return nil
}

// Shutdown does nothing: the output is closed by its owner.
func (spanExporter) Shutdown(context.Context) error { return nil }

// metricExporter exports metrics.
type metricExporter struct{ o *output }

// Export implements sdkmetric.Exporter, as the methods below do.
func (e metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	var err error
	if e.o.file == nil {
		err = e.o.send(ctx, e.o.cfg.MetricsURL, metrics(rm))
	} else {
		var lines []any
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				lines = append(lines, struct {
					Type   string          `json:"type"`
					Metric json.RawMessage `json:"metric"`
				}{"metric", metricMessage(m).json(nil)})
			}
		}
		err = e.o.write(lines)
	}
	if err != nil {
		e.o.warn(err)
	}
	return nil
}

// Temporality says that all is counted since the beginning.
func (metricExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation is the default one.
func (metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// ForceFlush does nothing: nothing is held back.
func (metricExporter) ForceFlush(context.Context) error { return nil }

// Shutdown does nothing: the output is closed by its owner.
func (metricExporter) Shutdown(context.Context) error { return nil }

// line is a span in the file, in the form that hosts of this protocol know.
type line struct {
	Type         string         `json:"type"`
	TraceID      string         `json:"traceId"`
	SpanID       string         `json:"spanId"`
	ParentSpanID string         `json:"parentSpanId,omitempty"`
	Name         string         `json:"name"`
	Kind         int            `json:"kind"` // 0 internal, 2 client
	StartTime    [2]int64       `json:"startTime"`
	EndTime      [2]int64       `json:"endTime"`
	Attributes   map[string]any `json:"attributes"`
	Status       status         `json:"status"`
	Events       []any          `json:"events"`
	Resource     struct {
		Attributes map[string]any `json:"attributes"`
	} `json:"resource"`
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	} `json:"instrumentationScope"`
}

type status struct {
	Code    int    `json:"code"` // 0, or 2: an error
	Message string `json:"message,omitempty"`
}

func spanLine(s sdktrace.ReadOnlySpan) line {
	c := s.SpanContext()
	l := line{
		Type: "span", TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), Name: s.Name(), Kind: int(s.SpanKind()) - 1,
		StartTime: clock(s.StartTime()), EndTime: clock(s.EndTime()), Attributes: object(s.Attributes()),
		Status: status{statusCode(s.Status().Code), s.Status().Description}, Events: []any{},
	}
	if p := s.Parent().SpanID(); p.IsValid() {
		l.ParentSpanID = p.String()
	}
	l.Resource.Attributes = object(s.Resource().Attributes())
	l.Scope.Name, l.Scope.Version = s.InstrumentationScope().Name, s.InstrumentationScope().Version
	return l
}

// clock is a time as seconds and nanoseconds.
func clock(t time.Time) [2]int64 { return [2]int64{t.Unix(), int64(t.Nanosecond())} }

func object(kvs []attribute.KeyValue) map[string]any {
	out := make(map[string]any, len(kvs))
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}
