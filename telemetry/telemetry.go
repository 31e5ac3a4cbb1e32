// Package telemetry makes OpenTelemetry traces and metrics of what sessions do, by
// the semantic conventions for generative AI, and exports them over OTLP/HTTP or to
// a file.
//
//	transom.Runtime ── trace.Span ──▶ Telemetry ──▶ OpenTelemetry SDK ──▶ OTLP/HTTP, file
//
//	cfg, on, err := telemetry.FromEnv(os.Getenv)   // as the SDKs configure it
//	t, err := telemetry.New(cfg)
//	rt, err := transom.Open(transom.Config{Observer: t})
//	…
//	t.Shutdown(ctx)                                // behind rt.Close
//
// The exporters are this package's own, since those of OpenTelemetry would make the
// program larger by half.
//
// # Ownership
//
// A Telemetry has the goroutines of its batches until Shutdown.
//
// # Errors
//
// What cannot be exported is dropped, and logged once a while. No session waits for
// an export or fails because of one.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/transom-run/transom/trace"
)

// Config says what is exported, and where to. One of File and the endpoints is
// required.
type Config struct {
	// File gets one JSON object a line for each span and metric; it is appended to.
	File string
	// TracesURL and MetricsURL are asked over OTLP/HTTP; "" exports none of the kind.
	TracesURL, MetricsURL string
	// JSON sends OTLP as JSON; otherwise it is protobuf.
	JSON bool
	// Headers are added to each request, such as those of an account.
	Headers map[string]string
	// Timeout bounds a request; 0 is 10 s.
	Timeout time.Duration
	// Interval is how often metrics are exported; 0 is 60 s.
	Interval time.Duration
	// Source is the name of the instrumentation scope; "" is "transom".
	Source string
	// Content puts what is said into spans: prompts, answers, arguments, results.
	Content bool
	// Version is that of the program.
	Version string
	// Resource are further attributes of the resource; service.name among them
	// replaces the default.
	Resource map[string]string
	// Logger gets what could not be exported; nil drops it.
	Logger *slog.Logger
}

// FromEnv reads the variables by which the SDKs, and OpenTelemetry's own
// specification, configure telemetry. on is false where they ask for none.
func FromEnv(getenv func(string) string) (cfg Config, on bool, err error) {
	file, kind := getenv("COPILOT_OTEL_FILE_EXPORTER_PATH"), getenv("COPILOT_OTEL_EXPORTER_TYPE")
	if !truth(getenv("COPILOT_OTEL_ENABLED")) && file == "" || truth(getenv("OTEL_SDK_DISABLED")) {
		return cfg, false, nil
	}
	if kind == "" {
		if kind = "otlp-http"; file != "" {
			kind = "file"
		}
	}
	cfg = Config{
		Source: getenv("COPILOT_OTEL_SOURCE_NAME"), Content: truth(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")),
		Resource: pairs(getenv("OTEL_RESOURCE_ATTRIBUTES")),
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		cfg.Resource["service.name"] = name
	}
	if ms, err := strconv.Atoi(getenv("OTEL_METRIC_EXPORT_INTERVAL")); err == nil && ms > 0 {
		cfg.Interval = time.Duration(ms) * time.Millisecond
	}
	switch kind {
	case "file":
		if file == "" {
			return cfg, false, errors.New("telemetry goes to a file, but no variable says which: set COPILOT_OTEL_FILE_EXPORTER_PATH")
		}
		cfg.File = file
		return cfg, true, nil
	case "otlp-http":
	default:
		return cfg, false, fmt.Errorf("COPILOT_OTEL_EXPORTER_TYPE is %q: it can be otlp-http or file", kind)
	}
	base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if base == "" {
		base = "http://localhost:4318"
	}
	cfg.TracesURL, cfg.MetricsURL = signal(getenv, "TRACES", base), signal(getenv, "METRICS", base)
	switch p := getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); p {
	case "", "http/protobuf":
	case "http/json":
		cfg.JSON = true
	default:
		return cfg, false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: it can be http/protobuf or http/json", p)
	}
	cfg.Headers = pairs(getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	if ms, err := strconv.Atoi(getenv("OTEL_EXPORTER_OTLP_TIMEOUT")); err == nil && ms > 0 {
		cfg.Timeout = time.Duration(ms) * time.Millisecond
	}
	return cfg, true, nil
}

// Secrets are the values in the variables of the environment that a server of
// telemetry is let in with, whether or not they are used: headers, and passwords in
// URLs. Nothing else should be shown them.
func Secrets(getenv func(string) string) (out []string) {
	for _, kind := range []string{"", "TRACES_", "METRICS_"} {
		headers := pairs(getenv("OTEL_EXPORTER_OTLP_" + kind + "HEADERS"))
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			out = append(out, headers[name], strings.TrimPrefix(headers[name], "Bearer "))
		}
		if u, err := url.Parse(getenv("OTEL_EXPORTER_OTLP_" + kind + "ENDPOINT")); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				out = append(out, password)
			}
		}
	}
	return out
}

// signal is the URL of one kind of telemetry; "" where it is switched off.
func signal(getenv func(string) string, kind, base string) string {
	if getenv("OTEL_"+kind+"_EXPORTER") == "none" {
		return ""
	}
	if own := getenv("OTEL_EXPORTER_OTLP_" + kind + "_ENDPOINT"); own != "" {
		return own
	}
	return strings.TrimRight(base, "/") + "/v1/" + strings.ToLower(kind)
}

func truth(s string) bool { return strings.EqualFold(s, "true") || s == "1" }

// pairs reads a list such as a=1,b=2.
func pairs(s string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		if k, v, ok := strings.Cut(part, "="); ok && strings.TrimSpace(k) != "" {
			out[strings.TrimSpace(k)] = unescape(strings.TrimSpace(v))
		}
	}
	return out
}

// Telemetry observes sessions: it is a trace.Observer. Its methods may be called
// from any goroutine.
type Telemetry struct {
	cfg     Config
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
	tracer  oteltrace.Tracer
	tokens  metric.Int64Histogram
	seconds metric.Float64Histogram
	out     *output
}

// New makes a Telemetry. It opens the file, and asks no server yet.
func New(cfg Config) (*Telemetry, error) {
	if cfg.Source == "" {
		cfg.Source = "transom"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Interval <= 0 {
		cfg.Interval = time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.File == "" && cfg.TracesURL == "" && cfg.MetricsURL == "" {
		return nil, errors.New("telemetry: nobody says where it goes: set File, TracesURL or MetricsURL")
	}
	out, err := newOutput(cfg)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{cfg: cfg, out: out}
	res := resource.NewSchemaless(resourceOf(cfg)...)
	if cfg.File != "" || cfg.TracesURL != "" {
		t.tracers = sdktrace.NewTracerProvider(sdktrace.WithBatcher(spanExporter{out}, sdktrace.WithBatchTimeout(time.Second)), sdktrace.WithResource(res),
			sdktrace.WithIDGenerator(given{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
		t.tracer = t.tracers.Tracer(cfg.Source, oteltrace.WithInstrumentationVersion(cfg.Version))
	}
	if cfg.File != "" || cfg.MetricsURL != "" {
		t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithResource(res),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{out}, sdkmetric.WithInterval(cfg.Interval))),
			buckets("gen_ai.client.token.usage", tokenBuckets), buckets("gen_ai.client.operation.duration", secondBuckets))
		m := t.meters.Meter(cfg.Source, metric.WithInstrumentationVersion(cfg.Version))
		t.tokens, err = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of a request to a model"))
		if err == nil {
			t.seconds, err = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("How long an operation took"))
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// The buckets that the semantic conventions give.
var (
	tokenBuckets  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	secondBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)

func buckets(name string, bounds []float64) sdkmetric.Option {
	return sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: name}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: bounds}}))
}

func resourceOf(cfg Config) []attribute.KeyValue {
	all := map[string]string{"service.name": "transom", "service.version": cfg.Version}
	for k, v := range cfg.Resource {
		all[k] = v
	}
	var out []attribute.KeyValue
	for k, v := range all {
		if v != "" {
			out = append(out, attribute.String(k, v))
		}
	}
	return out
}

// Content implements trace.Observer.
func (t *Telemetry) Content() bool { return t.cfg.Content }

// given takes the ids of spans from their contexts.
type given struct{}

type placeKey struct{}

// NewIDs implements sdktrace.IDGenerator, as NewSpanID does.
func (given) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	at, _ := ctx.Value(placeKey{}).(trace.Context)
	id, span, _ := at.IDs()
	return id, span
}

// NewSpanID makes the id of a span below another.
func (g given) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	_, span := g.NewIDs(ctx)
	return span
}

// Ended implements trace.Observer.
func (t *Telemetry) Ended(s *trace.Span) {
	if t.tracer != nil {
		t.span(s)
	}
	if t.meters != nil {
		t.measure(s)
	}
}

func (t *Telemetry) span(s *trace.Span) {
	ctx := context.WithValue(context.Background(), placeKey{}, s.At)
	if id, above, sampled := s.Parent.IDs(); above != ([8]byte{}) {
		flags := oteltrace.TraceFlags(0).WithSampled(sampled)
		state, err := oteltrace.ParseTraceState(s.Parent.State)
		if err != nil {
			state = oteltrace.TraceState{}
		}
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: id, SpanID: above, TraceFlags: flags, TraceState: state, Remote: true,
		}))
	}
	name, kind := s.Op, oteltrace.SpanKindInternal
	switch s.Op {
	case trace.Chat:
		kind = oteltrace.SpanKindClient
		name = strings.TrimSpace(name + " " + s.Model)
	case trace.Tool:
		name += " " + s.ToolName
	}
	_, span := t.tracer.Start(ctx, name, oteltrace.WithTimestamp(s.Start), oteltrace.WithSpanKind(kind), oteltrace.WithAttributes(attributes(s)...))
	if s.Error != "" && s.Error != "cancelled" && s.Error != "suspended" {
		span.SetStatus(codes.Error, s.Error)
	}
	span.End(oteltrace.WithTimestamp(s.End))
}

// attributes are those of the semantic conventions.
func attributes(s *trace.Span) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("gen_ai.operation.name", s.Op)}
	text := func(name, v string) {
		if v != "" {
			out = append(out, attribute.String(name, v))
		}
	}
	text("gen_ai.conversation.id", s.SessionID)
	text("gen_ai.request.model", s.Model)
	text("gen_ai.response.model", s.ResponseModel)
	text("gen_ai.response.id", s.ResponseID)
	text("error.type", s.Error)
	if s.Finish != "" {
		out = append(out, attribute.StringSlice("gen_ai.response.finish_reasons", []string{s.Finish}))
	}
	if s.HasUsage {
		out = append(out, attribute.Int("gen_ai.usage.input_tokens", s.InputTokens), attribute.Int("gen_ai.usage.output_tokens", s.OutputTokens))
	}
	if s.CachedTokens > 0 {
		out = append(out, attribute.Int("gen_ai.usage.cache_read.input_tokens", s.CachedTokens))
	}
	if s.Op == trace.Tool {
		text("gen_ai.tool.name", s.ToolName)
		text("gen_ai.tool.call.id", s.CallID)
		text("gen_ai.tool.call.arguments", s.Input)
		text("gen_ai.tool.call.result", s.Output)
		return out
	}
	text("gen_ai.input.messages", s.Input)
	text("gen_ai.output.messages", s.Output)
	return out
}

func (t *Telemetry) measure(s *trace.Span) {
	attrs := []attribute.KeyValue{attribute.String("gen_ai.operation.name", s.Op)}
	if s.Model != "" {
		attrs = append(attrs, attribute.String("gen_ai.request.model", s.Model))
	}
	if s.ResponseModel != "" {
		attrs = append(attrs, attribute.String("gen_ai.response.model", s.ResponseModel))
	}
	if s.Op == trace.Tool {
		attrs = append(attrs, attribute.String("gen_ai.tool.name", s.ToolName))
	}
	ctx := context.Background()
	if s.Op == trace.Chat && s.HasUsage {
		for kind, n := range map[string]int{"input": s.InputTokens, "output": s.OutputTokens} {
			t.tokens.Record(ctx, int64(n), metric.WithAttributes(append(attrs[:len(attrs):len(attrs)], attribute.String("gen_ai.token.type", kind))...))
		}
	}
	if s.Error != "" {
		attrs = append(attrs, attribute.String("error.type", s.Error))
	}
	t.seconds.Record(ctx, s.End.Sub(s.Start).Seconds(), metric.WithAttributes(attrs...))
}

// Flush implements trace.Flusher: it exports what has ended so far.
func (t *Telemetry) Flush(ctx context.Context) error {
	var errs []error
	if t.tracers != nil {
		errs = append(errs, t.tracers.ForceFlush(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.ForceFlush(ctx))
	}
	return errors.Join(errs...)
}

// Shutdown exports what is left and ends. ctx bounds how long that may take.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	if t.tracers != nil {
		errs = append(errs, t.tracers.Shutdown(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.Shutdown(ctx))
	}
	return errors.Join(append(errs, t.out.close())...)
}
