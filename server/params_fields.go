package server

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/internal/lazy"
)

// settings are the fields of sessionParams, by their names in JSON.
var settings = lazy.Value[map[string][]int]{Make: func() map[string][]int {
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[sessionParams]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" {
			all[strings.ToLower(name)] = f.Index
		}
	}
	return all
}}

// decodeGiven reads the settings of a session and says which were given. Each is read
// by itself: encoding/json makes a plan for a type and all types below it before it
// reads the first value, which for the settings that nobody gives takes longer than to
// read those that are.
func decodeGiven(req jsonrpc2.Request, p *sessionParams) (given map[string]json.RawMessage, err error) {
	if err := decode(req, &given); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(p).Elem()
	for name, raw := range given {
		index, ok := settings.Get()[strings.ToLower(name)] // encoding/json is as tolerant
		if ok && json.Unmarshal(raw, v.FieldByIndex(index).Addr().Interface()) != nil {
			return nil, decode(req, p) // which says it in the words of the whole
		}
	}
	return given, nil
}
