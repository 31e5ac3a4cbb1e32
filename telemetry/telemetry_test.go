package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metricsv1 "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracev1 "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/slim/otlp/common/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/transom-run/transom/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is a server that takes telemetry.
type collector struct {
	mu     sync.Mutex
	bodies map[string][][]byte
	kinds  map[string]string
	auth   string
	status int
}

func collect(t *testing.T) (*collector, string) {
	c := &collector{bodies: map[string][][]byte{}, kinds: map[string]string{}, status: 200}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], b)
		c.kinds[r.URL.Path] = r.Header.Get("Content-Type")
		c.auth = r.Header.Get("Authorization")
		w.WriteHeader(c.status)
	}))
	t.Cleanup(s.Close)
	return c, s.URL
}

// work is a turn with one request and one call, which failed.
func work() []*trace.Span {
	at := time.Unix(1700000000, 5).UTC()
	host, _ := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=x")
	agent := host.Child("agent")
	return []*trace.Span{
		{Op: trace.Chat, At: agent.Child("chat"), Parent: agent, Start: at, End: at.Add(time.Second), SessionID: "s", Model: "m", ResponseModel: "m-2", Finish: "stop", HasUsage: true, InputTokens: 7, OutputTokens: 3},
		{Op: trace.Tool, At: agent.Child("tool"), Parent: agent, Start: at, End: at.Add(time.Second), SessionID: "s", ToolName: "probe", CallID: "c1", Error: "failure", Input: `{"a":1}`, Output: "é"},
		{Op: trace.Agent, At: agent, Parent: host, Start: at, End: at.Add(2 * time.Second), SessionID: "s", Model: "m"},
	}
}

func export(t *testing.T, cfg Config) {
	t.Helper()
	o, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range work() {
		o.Ended(s)
	}
	if err := o.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func attrs(kvs []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		out[kv.Key] = strings.TrimSpace(kv.Value.String())
	}
	return out
}

// What is sent is read by OpenTelemetry's own messages.
func TestProtobuf(t *testing.T) {
	c, url := collect(t)
	export(t, Config{TracesURL: url + "/v1/traces", MetricsURL: url + "/v1/metrics", Source: "src", Version: "1", Headers: map[string]string{"Authorization": "Bearer k"}})
	if c.auth != "Bearer k" || c.kinds["/v1/traces"] != "application/x-protobuf" {
		t.Errorf("asked with %q, %q", c.auth, c.kinds["/v1/traces"])
	}
	var tr tracev1.ExportTraceServiceRequest
	if err := proto.Unmarshal(c.bodies["/v1/traces"][0], &tr); err != nil {
		t.Fatal(err)
	}
	rs := tr.ResourceSpans[0]
	if a := attrs(rs.Resource.Attributes); !strings.Contains(a["service.name"], "transom") {
		t.Errorf("resource %v", a)
	}
	scope := rs.ScopeSpans[0]
	if scope.Scope.Name != "src" || len(scope.Spans) != 3 {
		t.Fatalf("scope %v with %d spans", scope.Scope, len(scope.Spans))
	}
	for i, s := range scope.Spans {
		want := work()[i]
		traceID, spanID, _ := want.At.IDs()
		_, above, _ := want.Parent.IDs()
		if hex.EncodeToString(s.TraceId) != hex.EncodeToString(traceID[:]) || !bytes.Equal(s.SpanId, spanID[:]) || !bytes.Equal(s.ParentSpanId, above[:]) {
			t.Errorf("%s is at %x/%x below %x", s.Name, s.TraceId, s.SpanId, s.ParentSpanId)
		}
		if s.StartTimeUnixNano != 1700000000000000005 || s.EndTimeUnixNano <= s.StartTimeUnixNano || s.TraceState != "vendor=x" {
			t.Errorf("%s: %d to %d, state %q", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano, s.TraceState)
		}
	}
	chat, tool, agent := scope.Spans[0], scope.Spans[1], scope.Spans[2]
	if chat.Name != "chat m" || tool.Name != "execute_tool probe" || agent.Name != "invoke_agent" || chat.Kind != 3 || tool.Kind != 1 {
		t.Errorf("spans %s (%v), %s (%v), %s", chat.Name, chat.Kind, tool.Name, tool.Kind, agent.Name)
	}
	if int(chat.Status.GetCode()) != 0 || int(tool.Status.GetCode()) != 2 {
		t.Errorf("status %v, %v", chat.Status, tool.Status)
	}
	if a := attrs(chat.Attributes); !strings.Contains(a["gen_ai.usage.input_tokens"], "7") || !strings.Contains(a["gen_ai.response.finish_reasons"], "stop") {
		t.Errorf("chat %v", a)
	}
	var ms metricsv1.ExportMetricsServiceRequest
	if err := proto.Unmarshal(c.bodies["/v1/metrics"][0], &ms); err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, m := range ms.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		for _, p := range m.GetHistogram().DataPoints {
			n := uint64(0)
			for _, b := range p.BucketCounts {
				n += b
			}
			if n != p.Count || len(p.BucketCounts) != len(p.ExplicitBounds)+1 {
				t.Errorf("%s: %d of %d in buckets", m.Name, n, p.Count)
			}
			sums[m.Name+m.Unit] += p.GetSum()
		}
	}
	if diff := cmp.Diff(map[string]float64{"gen_ai.client.token.usage{token}": 10, "gen_ai.client.operation.durations": 4}, sums); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	c, url := collect(t)
	export(t, Config{TracesURL: url + "/v1/traces", MetricsURL: url + "/v1/metrics", JSON: true})
	var tr struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano string
					Kind                                                   int
					Status                                                 struct{ Code int }
				}
			}
		}
	}
	if err := json.Unmarshal(c.bodies["/v1/traces"][0], &tr); err != nil {
		t.Fatal(err)
	}
	s := tr.ResourceSpans[0].ScopeSpans[0].Spans[1]
	if s.TraceID != "0af7651916cd43dd8448eb211c80319c" || len(s.SpanID) != 16 || s.StartTimeUnixNano != "1700000000000000005" || s.Kind != 1 || s.Status.Code != 2 {
		t.Errorf("span %+v", s)
	}
	if !json.Valid(c.bodies["/v1/metrics"][0]) || !bytes.Contains(c.bodies["/v1/metrics"][0], []byte(`"sum":7,`)) {
		t.Errorf("metrics %s", c.bodies["/v1/metrics"][0])
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "t.jsonl")
	export(t, Config{File: file, Source: "src"})
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{}
	for _, l := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var one line
		if err := json.Unmarshal([]byte(l), &one); err != nil {
			t.Fatal(err)
		}
		types[one.Type]++
		if one.Type == "span" && one.Name == "execute_tool probe" {
			if one.Status.Code != 2 || one.Attributes["gen_ai.tool.call.result"] != "é" || one.Scope.Name != "src" || one.StartTime != [2]int64{1700000000, 5} {
				t.Errorf("span %s", l)
			}
		}
	}
	if types["span"] != 3 || types["metric"] != 2 {
		t.Errorf("lines %v", types)
	}
}

// A server that fails costs nothing but a line in the log, without its URL.
func TestServerFails(t *testing.T) {
	c, url := collect(t)
	c.status = 503
	var log bytes.Buffer
	export(t, Config{TracesURL: url + "/v1/traces?key=geheim", MetricsURL: "http://127.0.0.1:1/geheim", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if n := strings.Count(log.String(), "telemetry is not exported"); n != 1 || strings.Contains(log.String(), "geheim") {
		t.Errorf("logged:\n%s", log.String())
	}
}

func TestFromEnv(t *testing.T) {
	on := map[string]string{"COPILOT_OTEL_ENABLED": "true"}
	for _, tt := range []struct {
		env  map[string]string
		want Config
		on   bool
		err  string
	}{
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}},
		{env: map[string]string{"COPILOT_OTEL_ENABLED": "true", "OTEL_SDK_DISABLED": "true"}},
		{env: on, on: true, want: Config{TracesURL: "http://localhost:4318/v1/traces", MetricsURL: "http://localhost:4318/v1/metrics"}},
		{env: map[string]string{"COPILOT_OTEL_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x/y/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c,d=e", "OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "5"},
			on: true, want: Config{TracesURL: "http://x/y/v1/traces", JSON: true, Headers: map[string]string{"a": "b c", "d": "e"}, Timeout: 5 * time.Millisecond}},
		{env: map[string]string{"COPILOT_OTEL_FILE_EXPORTER_PATH": "/f", "COPILOT_OTEL_SOURCE_NAME": "n", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"},
			on: true, want: Config{File: "/f", Source: "n", Content: true}},
		{env: map[string]string{"COPILOT_OTEL_ENABLED": "1", "COPILOT_OTEL_EXPORTER_TYPE": "file"}, err: "COPILOT_OTEL_FILE_EXPORTER_PATH"},
		{env: map[string]string{"COPILOT_OTEL_ENABLED": "1", "COPILOT_OTEL_EXPORTER_TYPE": "console"}, err: "console"},
		{env: map[string]string{"COPILOT_OTEL_ENABLED": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: "grpc"},
	} {
		cfg, on, err := FromEnv(func(name string) string { return tt.env[name] })
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) || on != tt.on {
			t.Errorf("%v: on %v, %v", tt.env, on, err)
			continue
		}
		if !on {
			continue
		}
		for _, m := range []*map[string]string{&cfg.Resource, &cfg.Headers} {
			if len(*m) == 0 {
				*m = nil
			}
		}
		if diff := cmp.Diff(tt.want, cfg); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.env, diff)
		}
	}
	if _, err := New(Config{TracesURL: "ftp://x"}); err == nil {
		t.Error("a URL that is none of HTTP is taken")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("nothing is somewhere")
	}
}

// What a server is let in with is named, wherever it stands in the environment, and
// no error shows it.
func TestSecrets(t *testing.T) {
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS":          "x-key=one,authorization=Bearer%20two",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":  "ftp://user:three@127.0.0.1:1/v1/traces",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1/v1/metrics",
		"COPILOT_OTEL_ENABLED":                "true",
	}
	getenv := func(name string) string { return env[name] }
	if diff := cmp.Diff([]string{"Bearer two", "two", "one", "one", "three"}, Secrets(getenv)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"ftp://user:three@127.0.0.1:1/v1/traces", "http://user:three@127.0.0.1:x/", "http://user:three@[::1"} {
		env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = bad
		cfg, _, err := FromEnv(getenv)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "three") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
