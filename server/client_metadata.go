package server

import (
	"context"
	"maps"
	"slices"

	"github.com/transom-run/transom"
)

// maxMetadataSessions and maxMetadataKeys are how many sessions, and how many keys, one request may ask for:
// the protocol's.
const (
	maxMetadataSessions = 1000
	maxMetadataKeys     = 128
)

type clientBagsParams struct {
	SessionIDs []string `json:"sessionIds"`
	Keys       []string `json:"keys"`
}

// clientBags answers for each session by itself, in the order in which they were
// asked for.
func clientBags(ctx context.Context, c *conn, p *clientBagsParams) (any, error) {
	const op = "sessions.getClientMetadata"
	if len(p.SessionIDs) > maxMetadataSessions || len(p.Keys) > maxMetadataKeys {
		return nil, invalid(op, op+": at most 1000 sessionIds and 128 keys can be asked for at once")
	}
	out := []any{}
	for _, id := range p.SessionIDs {
		all, err := c.srv.cfg.Runtime.StoredClientMetadata(ctx, id)
		switch kind := transom.KindOf(err); {
		case err == nil:
			if p.Keys != nil {
				maps.DeleteFunc(all, func(k, _ string) bool { return !slices.Contains(p.Keys, k) })
			}
			out = append(out, map[string]any{"sessionId": id, "status": "ok", "metadata": all})
		case ctx.Err() != nil:
			return nil, err
		case kind == transom.KindNotFound || kind == transom.KindInvalidParams:
			out = append(out, map[string]any{"sessionId": id, "status": "notFound"})
		default:
			out = append(out, map[string]any{"sessionId": id, "status": "unavailable", "code": string(kind), "message": err.Error()})
		}
	}
	return out, nil
}

func getClientMetadata(s *transom.Session, _ *target) (any, error) { return s.ClientMetadata(), nil }

type clientMetadataParams struct {
	target
	Clear  bool              `json:"clear"`
	Remove []string          `json:"remove"`
	Set    map[string]string `json:"set"`
}

func updateClientMetadata(ctx context.Context, s *transom.Session, p *clientMetadataParams) (any, error) {
	return s.UpdateClientMetadata(ctx, transom.MetadataPatch{Clear: p.Clear, Remove: p.Remove, Set: p.Set})
}
