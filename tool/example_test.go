package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom/tool"
)

// A Go function becomes a tool, and a call of it goes all the way: the model's
// arguments are checked, the function runs, and what it gives is settled.
func Example() {
	type args struct {
		A int `json:"a" jsonschema:"the first number"`
		B int `json:"b" jsonschema:"the second number"`
	}
	add, err := tool.Func("add", "Adds two numbers", func(_ context.Context, in args) (int, error) {
		return in.A + in.B, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reg, err := tool.NewRegistry([]tool.Tool{add})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, _ := reg.Lookup("add")
	for _, raw := range []string{`{"a":17,"b":25}`, `{"a":"17"}`} {
		checked, problem := c.Check(raw)
		if problem != nil {
			fmt.Println(problem.ModelText)
			continue
		}
		out := tool.Run(context.Background(), c, tool.Call{ID: "call_1", Arguments: checked}, nil)
		fmt.Println(out.Type, out.ModelText)
	}
	// Output:
	// success 42
	// Invalid input for the tool 'add':
	// - missing required property "b" (integer)
	// - a: expected integer, got string "17"
	// The tool did not run. Correct the arguments and call it again.
}

// A host's answer goes the same way from ParseAnswer on.
func ExampleParseAnswer() {
	call := tool.Call{Name: "deploy", Arguments: json.RawMessage(`{"env":"prod"}`)}
	res, err := tool.ParseAnswer(json.RawMessage(`{"textResultForLlm":"not on a Friday","resultType":"denied"}`), nil)
	out := tool.Settle(call, res, err, nil)
	fmt.Println(out.Success, out.Code, out.ModelText)

	res, err = tool.ParseAnswer(nil, json.RawMessage(`"no such host"`))
	out = tool.Settle(call, res, err, nil)
	fmt.Println(out.ModelText)
	fmt.Println(out.EventMessage)
	// Output:
	// false denied not on a Friday
	// Failed to execute `deploy` tool with arguments: {"env":"prod"} due to error: Error: Tool execution failed
	// no such host
}
