package tokens

import (
	"bytes"
	"compress/flate"
	_ "embed" // the vocabularies
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"weak"
)

// The vocabularies as pack (pack_test.go) writes them: how many tokens there are, the
// length of each in the order of their ranks, and then their bytes; compressed.
var (
	//go:embed o200k_base.bin
	o200kPacked []byte
	//go:embed cl100k_base.bin
	cl100kPacked []byte
)

// rankBits is what a rank takes in a slot of the table; the rest of the 32 bits is
// from the hash, and saves most comparisons.
const (
	rankBits = 18
	rankMask = 1<<rankBits - 1
)

// none is the rank of what is no token; it is higher than all others.
const none = ^uint32(0)

// vocabulary maps the bytes of tokens to their ranks: a hash table of ranks, whose
// bytes stand in one string, since 200,000 strings in a map take four times as much.
type vocabulary struct {
	text  []byte   // the tokens, in the order of their ranks
	ends  []uint32 // where each ends in text
	table []uint32 // open addressing; 0 is empty, else the rank + 1 and bits of the hash
	seed  maphash.Seed
	bytes [256]uint32 // the ranks of single bytes
	next  func(s string, i int) int
}

// holder keeps a vocabulary for as long as somebody uses it.
type holder struct {
	packed []byte
	next   func(s string, i int) int

	mu   sync.Mutex
	kept weak.Pointer[vocabulary]
}

// get returns the vocabulary, unpacked if need be.
func (h *holder) get() *vocabulary {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.kept.Value(); v != nil {
		return v
	}
	v, err := unpack(bytes.NewReader(h.packed))
	if err != nil {
		panic("tokens: a vocabulary of this program is damaged: " + err.Error())
	}
	v.next = h.next
	h.kept = weak.Make(v)
	return v
}

// unpack reads what pack writes.
func unpack(from io.Reader) (*vocabulary, error) {
	r := flate.NewReader(from)
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, size := binary.LittleEndian.Uint32(head[:4]), binary.LittleEndian.Uint32(head[4:])
	if n >= rankMask || size > 64<<20 {
		return nil, fmt.Errorf("%d tokens of %d bytes are too many", n, size)
	}
	lengths := make([]byte, n)
	if _, err := io.ReadFull(r, lengths); err != nil {
		return nil, err
	}
	v := &vocabulary{text: make([]byte, size), ends: make([]uint32, n), seed: maphash.MakeSeed()}
	if _, err := io.ReadFull(r, v.text); err != nil {
		return nil, err
	}
	slots := 1
	for slots < int(n)*2 {
		slots *= 2
	}
	v.table = make([]uint32, slots)
	end := uint32(0)
	for rank, length := range lengths {
		if end += uint32(length); length == 0 || end > size {
			return nil, fmt.Errorf("token %d does not fit", rank)
		}
		v.ends[rank] = end
		v.insert(uint32(rank))
	}
	for b := range v.bytes {
		v.bytes[b] = v.find([]byte{byte(b)})
	}
	return v, nil
}

// token is the bytes of a rank.
func (v *vocabulary) token(rank uint32) []byte {
	begin := uint32(0)
	if rank > 0 {
		begin = v.ends[rank-1]
	}
	return v.text[begin:v.ends[rank]]
}

func (v *vocabulary) insert(rank uint32) {
	h := maphash.Bytes(v.seed, v.token(rank))
	mask := uint64(len(v.table) - 1)
	i := h & mask
	for v.table[i] != 0 {
		i = (i + 1) & mask
	}
	v.table[i] = uint32(h>>32)&^rankMask | (rank + 1)
}

// find returns the rank of a token, or none.
func (v *vocabulary) find(b []byte) uint32 {
	h := maphash.Bytes(v.seed, b)
	mask := uint64(len(v.table) - 1)
	tag := uint32(h>>32) &^ rankMask
	for i := h & mask; ; i = (i + 1) & mask {
		e := v.table[i]
		if e == 0 {
			return none
		}
		if e&^rankMask == tag {
			if rank := e&rankMask - 1; bytes.Equal(v.token(rank), b) {
				return rank
			}
		}
	}
}
