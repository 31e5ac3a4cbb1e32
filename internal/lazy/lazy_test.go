package lazy_test

import (
	"sync"
	"testing"

	"github.com/transom-run/transom/internal/lazy"
)

// A value is made once, whoever asks first, and all get the same.
func TestValue(t *testing.T) {
	made := 0
	v := lazy.Value[*int]{Make: func() *int { made++; return new(int) }}
	if made != 0 {
		t.Error("made before it was asked for")
	}
	var wg sync.WaitGroup
	got := make([]*int, 20)
	for i := range got {
		wg.Go(func() { got[i] = v.Get() })
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	for _, p := range got {
		if p == nil || p != got[0] {
			t.Errorf("%p is not %p", p, got[0])
		}
	}
}

func TestRegexp(t *testing.T) {
	r := lazy.Regexp{Expr: `^a+$`}
	if !r.Get().MatchString("aa") || r.Get().MatchString("ab") {
		t.Error("matches something else")
	}
	if first := r.Get(); first != r.Get() {
		t.Error("compiled again")
	}
	defer func() {
		if recover() == nil {
			t.Error("an expression that is none was compiled")
		}
	}()
	bad := lazy.Regexp{Expr: `(`}
	bad.Get()
}
