package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/transom-run/transom/model"
)

// nameless is a server for which nobody has named a model. Where it serves one
// model only, as llama.cpp and vLLM do, that is meant.
type nameless struct {
	server
	mu   sync.Mutex
	only string
}

// Stream makes one attempt; see [model.Provider].
func (n *nameless) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if req.Model == "" {
			id, err := n.model(ctx)
			if err != nil {
				yield(model.Chunk{}, err)
				return
			}
			named := *req
			named.Model = id
			req = &named
		}
		n.server.Stream(ctx, req)(yield)
	}
}

func (n *nameless) model(ctx context.Context) (string, error) {
	n.mu.Lock()
	id := n.only
	n.mu.Unlock()
	if id != "" {
		return id, nil
	}
	list, err := n.Models(ctx)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		var names []string
		for _, m := range list[:min(len(list), 8)] {
			names = append(names, m.ID)
		}
		return "", &model.Error{Kind: model.Setup, Endpoint: n.Endpoint(), Msg: fmt.Sprintf(
			"No model is named, and the server at %s has %d of them. Name one with the session's model or COPILOT_MODEL: %s.",
			n.Endpoint(), len(list), cmp.Or(strings.Join(names, ", "), "it lists none"))}
	}
	n.mu.Lock()
	n.only = list[0].ID
	n.mu.Unlock()
	return list[0].ID, nil
}
