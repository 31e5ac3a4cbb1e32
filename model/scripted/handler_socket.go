package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/transom-run/transom/model/responses"
)

// wantsSocket reports whether a request asks for the WebSocket of responses.
func wantsSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/responses") && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// serveSocket serves responses on a WebSocket: each message response.create is a
// request, and its events are messages.
func (p *Provider) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxBody)
	for {
		_, body, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if err := p.serveMessage(r, conn, body); err != nil {
			conn.Close(websocket.StatusInternalError, "cut")
			return
		}
	}
}

// serveMessage answers one message. An error breaks the connection.
func (p *Provider) serveMessage(r *http.Request, conn *websocket.Conn, body []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &head) != nil || head.Type != "response.create" {
		return sendError(r, conn, http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("a message of type %q is not served here; use response.create", head.Type))
	}
	req, err := responses.DecodeRequest(body)
	if err != nil {
		return sendError(r, conn, http.StatusBadRequest, "invalid_json", "the message is not a request: "+err.Error())
	}
	req.Stream = true
	pl, e := p.plan(req)
	switch {
	case e != nil:
		return sendError(r, conn, http.StatusBadRequest, e.Code, e.Msg)
	case pl.failure != nil && pl.failure.Status != 0:
		return sendError(r, conn, pl.failure.Status, pl.failure.Code, cmp.Or(pl.failure.Message, "The scripted model fails as its file says."))
	case pl.silent:
		<-r.Context().Done()
		return r.Context().Err()
	}
	ev := streamResponse(pl)
	chunks := p.chunks(pl, true)
	limit, bytes, broken := limits(pl.failure, len(chunks))
	if err := wait(r.Context(), pl.answer[0].Delay); err != nil {
		return err
	}
	for i, c := range chunks[:limit] {
		if i > 0 && wait(r.Context(), pl.answer[0].ChunkDelay) != nil {
			return r.Context().Err()
		}
		if err := sendEvents(r, conn, ev.chunk(c), &bytes); err != nil {
			return err
		}
	}
	switch {
	case broken == nil:
		return sendEvents(r, conn, ev.end(), &bytes)
	case pl.failure.Stall != nil:
		<-r.Context().Done()
	}
	return errCut
}

// sendEvents sends events until so many bytes are used up.
func sendEvents(r *http.Request, conn *websocket.Conn, list []event, bytes *int) error {
	for _, e := range list {
		data, err := json.Marshal(e.data)
		if err != nil {
			return err
		}
		if *bytes -= len(data); *bytes < 0 {
			return errCut
		}
		if err := conn.Write(r.Context(), websocket.MessageText, data); err != nil {
			return err
		}
	}
	return nil
}

func sendError(r *http.Request, conn *websocket.Conn, status int, code, message string) error {
	data, err := json.Marshal(object{"type": "error", "status": status, "error": object{"type": cmp.Or(code, "error"), "code": code, "message": message}})
	if err != nil {
		return errors.Join(errCut, err)
	}
	return conn.Write(r.Context(), websocket.MessageText, data)
}
