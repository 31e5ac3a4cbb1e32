package schema

import (
	"math/big"
	"strings"
)

// decimal is the exact value of a JSON number, 0.digits × 10^exp. It compares
// without ever writing the number out: 1e1000000000 costs no more than 1.
type decimal struct {
	neg    bool
	digits string // no leading and no trailing zeros; "" is zero
	exp    int64
}

// maxExp bounds exponents: beyond it numbers of one sign are all equally large.
const maxExp = 1 << 40

// parseDecimal reads a number that keeps JSON's grammar.
func parseDecimal(text string) decimal {
	var d decimal
	text, d.neg = strings.CutPrefix(text, "-")
	var exp int64
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp = parseExp(text[i+1:])
		text = text[:i]
	}
	whole, frac, _ := strings.Cut(text, ".")
	d.digits = whole
	if frac != "" {
		d.digits = whole + frac
	}
	d.exp = exp + int64(len(whole))
	trimmed := strings.TrimLeft(d.digits, "0")
	d.exp -= int64(len(d.digits) - len(trimmed))
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func parseExp(s string) int64 {
	neg := strings.HasPrefix(s, "-")
	var n int64
	for _, c := range strings.TrimLeft(s, "+-") {
		if n = n*10 + int64(c-'0'); n > maxExp {
			n = maxExp
		}
	}
	if neg {
		return -n
	}
	return n
}

func (d decimal) isInt() bool { return d.exp >= int64(len(d.digits)) }

// cmp is -1, 0 or 1 as d is less than, equal to or greater than e.
func (d decimal) cmp(e decimal) int {
	switch {
	case d.sign() != e.sign():
		return sign(d.sign() - e.sign())
	case d.digits == "":
		return 0
	}
	c := 0
	if d.exp != e.exp {
		c = 1
		if d.exp < e.exp {
			c = -1
		}
	} else {
		c = strings.Compare(d.digits, e.digits)
	}
	if d.neg {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// multipleOf reports whether d is a whole multiple of m, which is not zero.
func (d decimal) multipleOf(m decimal) bool {
	if d.digits == "" {
		return true
	}
	// The powers of ten of the last digits. The last digit of d is not 0, so a
	// d that ends further right than m is no multiple of it.
	shift := (d.exp - int64(len(d.digits))) - (m.exp - int64(len(m.digits)))
	if shift < 0 {
		return false
	}
	mod, _ := new(big.Int).SetString(m.digits, 10)
	n, _ := new(big.Int).SetString(d.digits, 10)
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), mod))
	return n.Mod(n, mod).Sign() == 0
}

// smallInt is the value of a number that is a whole one and not negative, cut
// to what fits 31 bits.
func (d decimal) smallInt() (int, bool) {
	if d.neg || !d.isInt() {
		return 0, false
	}
	if d.exp > 9 {
		return 1<<31 - 1, true
	}
	n := 0
	for i := range int(d.exp) {
		n *= 10
		if i < len(d.digits) {
			n += int(d.digits[i] - '0')
		}
	}
	return n, true
}
