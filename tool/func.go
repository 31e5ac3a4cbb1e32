package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// Func makes a tool of a Go function. The schema of the arguments comes from In,
// a struct (or a map with string keys): names and optional fields from its json
// tags (omitempty and omitzero make a field optional), descriptions from its
// jsonschema tags.
//
//	type args struct {
//		City string `json:"city" jsonschema:"the city, in English"`
//		Days int    `json:"days,omitempty" jsonschema:"1 to 7"`
//	}
//
// What fn returns is the result: a string as it is, a [Result] as it is,
// anything else as JSON. Its error is thrown, as with any [Handler]. The call
// itself is in the context: [CallFrom]. Set further fields (IsTerminal, Timeout)
// on the tool that Func returns.
//
// Func fails for an In that no JSON object can stand for.
func Func[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error)) (Tool, error) {
	t := reflect.TypeFor[In]()
	fault := func(format string, args ...any) (Tool, error) {
		return Tool{}, &DefinitionError{Tool: name, Msg: fmt.Sprintf(format, args...)}
	}
	if fn == nil {
		return fault("the function is nil")
	}
	base := t
	if base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if k := base.Kind(); k != reflect.Struct && k != reflect.Map {
		return fault("arguments of the type %v cannot come from a JSON object; use a struct", t)
	}
	inferred, err := jsonschema.ForType(base, nil)
	if err != nil {
		return fault("no JSON Schema for arguments of the type %v: %v", t, err)
	}
	params, err := json.Marshal(inferred)
	if err != nil {
		return fault("no JSON Schema for arguments of the type %v: %v", t, err)
	}
	out := Tool{Name: name, Description: description, Parameters: params}
	out.Handler = func(ctx context.Context, call Call) (Result, error) {
		var in In
		if err := json.Unmarshal(call.Arguments, &in); err != nil {
			// The schema holds, the type does not: a number beyond its range, a
			// time that is none. The model can do better.
			return Result{Type: Failure, Text: "Invalid input: " + err.Error()}, nil
		}
		v, err := fn(ctx, in)
		if err != nil {
			return Result{}, err
		}
		return resultOf(v)
	}
	if _, err := Compile(out); err != nil {
		return Tool{}, err
	}
	return out, nil
}

func resultOf(v any) (Result, error) {
	switch v := v.(type) {
	case string:
		return Result{Text: v}, nil
	case Result:
		return v, nil
	case *Result:
		if v != nil {
			return *v, nil
		}
		return Result{}, fmt.Errorf("the tool returned a nil *Result")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return Result{Text: string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))}, nil
}
