package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/tool/internal/schema"
)

const benchParams = `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of the file"},"view_range":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},"mode":{"type":"string","enum":["read","write","append"]},"options":{"type":"object","properties":{"force":{"type":"boolean"},"depth":{"type":"integer","minimum":0}},"additionalProperties":false}},"required":["path"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`

// BenchmarkCompile is the first declaration of a schema in the process.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := schema.Compile(benchParams, schema.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Definition()
	}
}

// BenchmarkRegistry is what a session with two known tools costs.
func BenchmarkRegistry(b *testing.B) {
	tools := []Tool{{Name: "a", Parameters: json.RawMessage(benchParams)}, {Name: "b"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewRegistry(tools); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	c := mustCompile(b, "view", benchParams)
	for _, bb := range []struct{ name, raw string }{
		{"good", `{"path":"/a/b/c.go","view_range":[1,200],"mode":"read","options":{"force":true,"depth":3}}`},
		{"bad", `{"path":5,"view_range":[1],"mode":"reed","optoins":{}}`},
		{"1MiB", `{"path":"` + strings.Repeat(`x\n`, 350_000) + `"}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.raw)))
			for b.Loop() {
				c.Check(bb.raw)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, size := range []int{100, 8 << 20} {
		raw, _ := json.Marshal(map[string]any{"textResultForLlm": strings.Repeat("x", size), "resultType": "success"})
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				res, err := ParseAnswer(raw, nil)
				Settle(Call{Name: "a"}, res, err, nil)
			}
		})
	}
}

func BenchmarkRun(b *testing.B) {
	c := compiled(b, Tool{Handler: func(context.Context, Call) (Result, error) { return Result{Text: "ok"}, nil }})
	b.ReportAllocs()
	for b.Loop() {
		Run(b.Context(), c, Call{}, nil)
	}
}
