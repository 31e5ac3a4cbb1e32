package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
)

// message is a message of OTLP: its fields, in order. It is written as protobuf or
// as JSON, by the rules that OTLP has for both.
type message []field

// field is one field of a message. What has the zero value of its kind is left out
// unless it is set all the same, as one of a choice.
type field struct {
	num  int
	name string
	v    any
	set  bool
}

// The kinds of values beside string, bool, message and []message.
type (
	id      []byte // bytes in protobuf, hexadecimal in JSON
	number  int    // an enumeration
	integer int64
	fixed   uint64
	double  float64
	counts  []uint64
	bounds  []float64
)

func (f field) zero() bool {
	if f.set {
		return false
	}
	switch v := f.v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case id:
		return len(v) == 0
	case number:
		return v == 0
	case integer:
		return v == 0
	case fixed:
		return v == 0
	case double:
		return v == 0
	case counts:
		return len(v) == 0
	case bounds:
		return len(v) == 0
	case message:
		return len(v) == 0
	case []message:
		return len(v) == 0
	}
	return false
}

// The wire types of protobuf.
const (
	varint  = 0
	fixed64 = 1
	lengthy = 2
)

func tag(b []byte, num, wire int) []byte {
	return binary.AppendUvarint(b, uint64(num)<<3|uint64(wire))
}

func chunk(b []byte, num int, content []byte) []byte {
	b = binary.AppendUvarint(tag(b, num, lengthy), uint64(len(content)))
	return append(b, content...)
}

// protobuf appends the message to b.
func (m message) protobuf(b []byte) []byte {
	for _, f := range m {
		if f.zero() {
			continue
		}
		switch v := f.v.(type) {
		case string:
			b = chunk(b, f.num, []byte(v))
		case id:
			b = chunk(b, f.num, v)
		case bool:
			n := byte(0)
			if v {
				n = 1
			}
			b = append(tag(b, f.num, varint), n)
		case number:
			b = binary.AppendUvarint(tag(b, f.num, varint), uint64(v))
		case integer:
			b = binary.AppendUvarint(tag(b, f.num, varint), uint64(v))
		case fixed:
			b = binary.LittleEndian.AppendUint64(tag(b, f.num, fixed64), uint64(v))
		case double:
			b = binary.LittleEndian.AppendUint64(tag(b, f.num, fixed64), math.Float64bits(float64(v)))
		case counts:
			var packed []byte
			for _, n := range v {
				packed = binary.LittleEndian.AppendUint64(packed, n)
			}
			b = chunk(b, f.num, packed)
		case bounds:
			var packed []byte
			for _, n := range v {
				packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(n))
			}
			b = chunk(b, f.num, packed)
		case message:
			b = chunk(b, f.num, v.protobuf(nil))
		case []message:
			for _, one := range v {
				b = chunk(b, f.num, one.protobuf(nil))
			}
		}
	}
	return b
}

// json appends the message to b. Integers of 64 bits are strings there.
func (m message) json(b []byte) []byte {
	b = append(b, '{')
	first := true
	for _, f := range m {
		if f.zero() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendQuote(b, f.name), ':')
		b = jsonValue(b, f.v)
	}
	return append(b, '}')
}

func jsonValue(b []byte, v any) []byte {
	quoted := func(b []byte, n uint64) []byte { return append(strconv.AppendUint(append(b, '"'), n, 10), '"') }
	switch v := v.(type) {
	case id:
		return append(hex.AppendEncode(append(b, '"'), v), '"')
	case number:
		return strconv.AppendInt(b, int64(v), 10)
	case integer:
		return append(strconv.AppendInt(append(b, '"'), int64(v), 10), '"')
	case fixed:
		return quoted(b, uint64(v))
	case counts:
		return list(b, len(v), func(b []byte, i int) []byte { return quoted(b, v[i]) })
	case bounds:
		return list(b, len(v), func(b []byte, i int) []byte { return jsonValue(b, double(v[i])) })
	case message:
		return v.json(b)
	case []message:
		return list(b, len(v), func(b []byte, i int) []byte { return v[i].json(b) })
	case double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return append(b, "null"...)
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

func list(b []byte, n int, one func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, i)
	}
	return append(b, ']')
}
