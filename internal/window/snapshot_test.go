package window

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model"
)

// fill gives every field below v a value of its own, so that a field that
// AppendMessages does not know is seen.
func fill(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.String:
		*n++
		v.SetString(fmt.Sprintf("text %d\n\x00é", *n))
	default:
		panic("a message has a field of kind " + v.Kind().String() + ": teach AppendMessages about it")
	}
}

// TestMessagesKeepEveryField: all that a message can hold comes back.
func TestMessagesKeepEveryField(t *testing.T) {
	n := 0
	var want Window
	want.settled = make([]model.Message, 3)
	for i := range want.settled {
		fill(reflect.ValueOf(&want.settled[i]).Elem(), &n)
	}
	want.settled[1] = model.Message{Role: model.User} // nothing but what must be
	want.prompts = []string{"", "one\ntwo"}
	var got Window
	if err := got.TakeMessages(string(want.AppendMessages(nil))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.settled, got.settled); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.prompts, got.prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}

// FuzzTakeMessages: bytes that a disk made up are an error or a window, and what
// a window was read from is what it writes.
func FuzzTakeMessages(f *testing.F) {
	n := 0
	var w Window
	w.settled = make([]model.Message, 1)
	fill(reflect.ValueOf(&w.settled[0]).Elem(), &n)
	good := string(w.AppendMessages(nil))
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add("")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
	f.Fuzz(func(t *testing.T, data string) {
		var w Window
		if w.TakeMessages(data) != nil {
			return
		}
		var again Window
		if err := again.TakeMessages(string(w.AppendMessages(nil))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.settled, again.settled); diff != "" {
			t.Fatal(diff)
		}
	})
}
