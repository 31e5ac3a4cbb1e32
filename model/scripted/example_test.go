package scripted_test

import (
	"context"
	"fmt"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

func Example() {
	p := scripted.New(scripted.Config{Replies: []modelfile.Message{
		scripted.Calls(model.Call{ID: "c1", Name: "forecast", Arguments: `{"city":"Oslo"}`}),
		scripted.Say("It rains."),
	}})
	for range 2 {
		answer, err := model.Collect(p.Stream(context.Background(), &model.Request{Model: "demo"}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(answer.Message.Text, answer.Message.Calls)
	}
	// Output:
	//  [{c1 forecast {"city":"Oslo"}}]
	// It rains. []
}
