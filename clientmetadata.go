package transom

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// The limits of what clients keep with a session, in bytes but for the number of
// entries. They are the protocol's.
const (
	maxMetadataEntries = 128
	maxMetadataKey     = 256
	maxMetadataValue   = 16 << 10
	maxMetadataBytes   = 64 << 10
)

// MetadataPatch changes what clients keep with a session, in the order of its
// fields.
type MetadataPatch struct {
	Clear  bool // all goes
	Remove []string
	Set    map[string]string
}

// ClientMetadata is what clients keep with the session. Transom only keeps it.
func (h *Session) ClientMetadata() map[string]string {
	out := map[string]string{}
	maps.Copy(out, h.sess.View().ClientMetadata)
	return out
}

// StoredClientMetadata is what clients keep with a stored session, loaded or not.
// NotFound where it has no log.
func (r *Runtime) StoredClientMetadata(ctx context.Context, id string) (map[string]string, error) {
	const op = "sessions.getClientMetadata"
	out := map[string]string{}
	if s := r.live(id); s != nil {
		maps.Copy(out, s.View().ClientMetadata)
		return out, nil
	}
	log, _, err := r.storage().Open(ctx, id)
	if err != nil {
		return nil, wrap(op, id, err)
	}
	defer log.Close()
	state, _, err := session.Load(log)
	if err != nil {
		return nil, wrap(op, id, err)
	}
	maps.Copy(out, state.ClientMetadata)
	return out, nil
}

// UpdateClientMetadata changes what clients keep with the session, all of it or
// nothing, and returns what that comes to. It is in the log when this returns.
func (h *Session) UpdateClientMetadata(ctx context.Context, p MetadataPatch) (map[string]string, error) {
	const op = "session.metadata.updateClientMetadata"
	h.sess.files.Lock() // one change after the other
	defer h.sess.files.Unlock()
	change := event.ClientMetadata{Clear: p.Clear, Remove: p.Remove, Set: p.Set}
	after := turn.PatchMetadata(h.sess.View().ClientMetadata, change)
	if why := tooMuchMetadata(p, after); why != "" {
		return nil, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: why}
	}
	if _, err := h.do(context.WithoutCancel(ctx), record{op, change}); err != nil {
		return nil, err
	}
	return after, nil
}

// tooMuchMetadata says what of a change is not allowed; "" where all of it is.
func tooMuchMetadata(p MetadataPatch, after map[string]string) string {
	keys := append([]string{}, p.Remove...)
	for k, v := range p.Set {
		keys = append(keys, k)
		if len(v) > maxMetadataValue {
			return fmt.Sprintf("the value of %q has %d bytes: at most %d are kept", k, len(v), maxMetadataValue)
		}
	}
	for _, k := range keys {
		switch {
		case k == "" || len(k) > maxMetadataKey:
			return fmt.Sprintf("a key has %d bytes: give it 1 to %d", len(k), maxMetadataKey)
		case strings.HasPrefix(k, "copilot/") || strings.HasPrefix(k, "github/"):
			return fmt.Sprintf("the key %q is reserved: begin it with a name of your own", k)
		}
	}
	size, err := json.Marshal(after)
	if err != nil {
		return err.Error()
	}
	if len(after) > maxMetadataEntries || len(size) > maxMetadataBytes {
		return fmt.Sprintf("that would be %d entries of %d bytes: at most %d of %d together are kept", len(after), len(size), maxMetadataEntries, maxMetadataBytes)
	}
	return ""
}
