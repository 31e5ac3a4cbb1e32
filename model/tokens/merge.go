package tokens

import "container/heap"

// merging is one piece that becomes tokens.
type merging struct {
	piece []byte
	parts []part
	pairs pairs
	out   []uint32
}

// part is a run of bytes that has become one token. Parts that were merged into the
// one before them stay in the list, and are skipped.
type part struct {
	begin, end int32
	prev, next int32  // neighbours in the list of parts; -1 is none
	pair       uint32 // the rank of this part and the next in one; none where that is no token
}

// short is the length of a piece up to which looking for the best pair by going over
// all of them is faster than a heap.
const short = 64

// encode appends the tokens of work.piece.
func (v *vocabulary) encode(out []uint32, work *merging) []uint32 {
	p := work.piece
	if len(p) == 1 {
		return append(out, v.bytes[p[0]])
	}
	if rank := v.find(p); rank != none {
		return append(out, rank)
	}
	parts := work.parts[:0]
	for i := range p {
		parts = append(parts, part{int32(i), int32(i + 1), int32(i - 1), int32(i + 1), none})
	}
	parts[len(parts)-1].next = -1
	work.parts = parts
	for i := range len(parts) - 1 {
		parts[i].pair = v.find(p[i : i+2])
	}
	if len(p) <= short {
		v.mergeShort(work)
	} else {
		v.mergeLong(work)
	}
	for i := int32(0); i >= 0; i = parts[i].next {
		out = append(out, v.find(p[parts[i].begin:parts[i].end]))
	}
	return out
}

// join merges a part with the one after it.
func (v *vocabulary) join(work *merging, i int32) {
	parts := work.parts
	gone := parts[i].next
	parts[i].end, parts[i].next = parts[gone].end, parts[gone].next
	parts[gone].pair, parts[gone].end = none, parts[gone].begin // it is no more
	if n := parts[i].next; n >= 0 {
		parts[n].prev = i
	}
	v.pair(work, i)
	if parts[i].prev >= 0 {
		v.pair(work, parts[i].prev)
	}
}

func (v *vocabulary) pair(work *merging, i int32) {
	p := &work.parts[i]
	if p.pair = none; p.next >= 0 {
		p.pair = v.find(work.piece[p.begin:work.parts[p.next].end])
	}
}

// mergeShort joins the pair of the lowest rank, the first of equals, until none is a
// token.
func (v *vocabulary) mergeShort(work *merging) {
	for {
		best, rank := int32(-1), none
		for i := int32(0); i >= 0; i = work.parts[i].next {
			if work.parts[i].pair < rank {
				best, rank = i, work.parts[i].pair
			}
		}
		if best < 0 {
			return
		}
		v.join(work, best)
	}
}

// mergeLong does the same for pieces of any length in n log n: a text of one letter
// over and over is one piece.
func (v *vocabulary) mergeLong(work *merging) {
	q := work.pairs[:0]
	for i, p := range work.parts {
		if p.pair != none {
			q = append(q, pair{p.pair, int32(i)})
		}
	}
	work.pairs = q
	heap.Init(&work.pairs)
	for len(work.pairs) > 0 {
		best := heap.Pop(&work.pairs).(pair)
		if work.parts[best.at].pair != best.rank {
			continue // it has changed since, and stands in the heap anew
		}
		v.join(work, best.at)
		for _, i := range []int32{best.at, work.parts[best.at].prev} {
			if i >= 0 && work.parts[i].pair != none {
				heap.Push(&work.pairs, pair{work.parts[i].pair, i})
			}
		}
	}
}

// pair is a part and the next, ordered by rank and then by place.
type pair struct {
	rank uint32
	at   int32
}

type pairs []pair

func (q pairs) Len() int { return len(q) }
func (q pairs) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}
func (q pairs) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairs) Push(x any)   { *q = append(*q, x.(pair)) }
func (q *pairs) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
