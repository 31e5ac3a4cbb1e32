package server

import (
	"context"

	"github.com/transom-run/transom"
)

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
