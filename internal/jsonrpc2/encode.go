package jsonrpc2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
)

// Buffers that bodies are built in. What grew past keepBuffer is not kept.
const keepBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newBuffer() *bytes.Buffer {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

// freeBuffer takes back a buffer whose bytes nobody refers to any more.
func freeBuffer(b *bytes.Buffer) {
	if b.Cap() <= keepBuffer {
		buffers.Put(b)
	}
}

// encodeValue appends v as JSON. A json.RawMessage goes in as it is, trusted:
// checking it again would cost more than all the rest. Unlike json.Marshal it
// leaves <, > and & alone, which only matter inside HTML. A panic of a
// MarshalJSON method is an error: whoever encodes owes somebody an answer.
func encodeValue(b *bytes.Buffer, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encoding %T panicked: %v", v, p)
		}
	}()
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
		return nil
	case json.RawMessage:
		if len(v) == 0 {
			b.WriteString("null")
		} else {
			b.Write(v)
		}
		return nil
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

// encodeResult builds the body of a good answer. It always has a result member,
// since some clients take an answer without one for malformed.
func encodeResult(b *bytes.Buffer, id ID, result any) error {
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.WriteString(string(id))
	b.WriteString(`,"result":`)
	if err := encodeValue(b, result); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// encodeFailure builds the body of an error answer; the empty ID becomes null.
// It cannot fail: data that does not encode is left out.
func encodeFailure(b *bytes.Buffer, id ID, e *Error) {
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	if id == "" {
		id = "null"
	}
	b.WriteString(string(id))
	b.WriteString(`,"error":{"code":`)
	b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(e.Code), 10))
	b.WriteString(`,"message":`)
	b.Write(appendQuoted(b.AvailableBuffer(), e.Message))
	if e.Data != nil {
		mark := b.Len()
		b.WriteString(`,"data":`)
		if err := encodeValue(b, e.Data); err != nil {
			b.Truncate(mark)
		}
	}
	b.WriteString("}}")
}

// appendCallHead appends the body of a request or notification up to where its
// params or its closing brace follow. The empty ID makes a notification.
func appendCallHead(dst []byte, id ID, method string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if id != "" {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"method":`...)
	return appendQuoted(dst, method)
}

// encodeCall builds the body of a request or notification. Nil params are left
// out.
func encodeCall(b *bytes.Buffer, id ID, method string, params any) error {
	b.Write(appendCallHead(b.AvailableBuffer(), id, method))
	if params != nil {
		b.WriteString(`,"params":`)
		if err := encodeValue(b, params); err != nil {
			return fmt.Errorf("jsonrpc2: encode params of %s: %w", method, err)
		}
	}
	b.WriteByte('}')
	return nil
}

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if b := s[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
