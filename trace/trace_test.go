package trace

import "testing"

func TestParse(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for in, want := range map[string]string{
		good: good, " " + good + " ": good,
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		good + "-x": "",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"": "", "x": "", "00-1-2-3": "",
	} {
		c, ok := Parse(in, "a=b")
		if c.Parent != want || ok != (want != "") {
			t.Errorf("%q is %q, %v", in, c.Parent, ok)
		}
	}
	if c, _ := Parse(good, "a=b\r\nX: y"); c.State != "" {
		t.Errorf("state %q", c.State)
	}
}

func TestChild(t *testing.T) {
	c, _ := Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "a=b")
	one, two := c.Child("1"), c.Child("2")
	if one == two || one != c.Child("1") || one.State != "a=b" {
		t.Errorf("children %v, %v", one, two)
	}
	id, span, sampled := one.IDs()
	above, aboveSpan, _ := c.IDs()
	if id != above || span == aboveSpan || sampled {
		t.Errorf("child %v of %v", one, c)
	}
	if again, ok := Parse(one.Parent, one.State); !ok || again != one {
		t.Errorf("%v is read as %v", one, again)
	}
	if r := Root("x"); len(r.Parent) != 55 || r == Root("y") || r.Child("z").Parent == "" {
		t.Errorf("root %v", r)
	}
	if (Context{}).Child("x") != (Context{}) {
		t.Error("nothing has children")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b")
	f.Add("00--", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, ok := Parse(parent, state)
		if !ok {
			return
		}
		if again, ok := Parse(c.Parent, c.State); !ok || again != c {
			t.Errorf("%q is %v, and that %v", parent, c, again)
		}
		if c.Child("x").Parent == c.Parent {
			t.Error("a child is its parent")
		}
	})
}
