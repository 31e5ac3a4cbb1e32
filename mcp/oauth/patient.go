package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// errNoTokens is of metadata by which a login could not end well.
var errNoTokens = errors.New("it names no token_endpoint")

// maxAnswer bounds what is read of any answer.
const maxAnswer = 1 << 20

// patient reads the answers of authorization servers before the SDK does. It refuses
// metadata that lead a user to a page and then nowhere, and mends what the SDK
// would lose a token for.
type patient struct{ http.RoundTripper }

// RoundTrip makes a request; see [http.RoundTripper].
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	switch good := res.StatusCode/100 == 2; {
	case good && r.Method == http.MethodGet && aimless(raw):
		return nil, errNoTokens
	case good && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded": // for a token
		raw = mended(raw)
		res.Header.Del("Content-Length")
		res.ContentLength = int64(len(raw))
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return res, nil
}

// aimless reports whether a document sends users to a page, and names no place where
// what comes of it could be redeemed.
func aimless(raw []byte) bool {
	var doc struct {
		Page  string `json:"authorization_endpoint"`
		Token string `json:"token_endpoint"`
	}
	return json.Unmarshal(raw, &doc) == nil && doc.Page != "" && doc.Token == ""
}

// mended is a token with its time in whole seconds, as RFC 6749 has it. Servers write
// fractions, exponents and texts; one that cannot be read says nothing.
func mended(raw []byte) []byte {
	const name = "expires_in"
	var answer map[string]json.RawMessage
	if json.Unmarshal(raw, &answer) != nil || answer[name] == nil {
		return raw
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(answer[name]), `"`)), 64)
	if err != nil || math.IsNaN(seconds) {
		delete(answer, name)
	} else {
		seconds = max(min(math.Ceil(seconds), math.MaxInt32), math.MinInt32)
		answer[name] = strconv.AppendInt(nil, int64(seconds), 10)
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return raw
	}
	return out
}
