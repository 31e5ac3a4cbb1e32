package markdown

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFromHTML(t *testing.T) {
	base, _ := url.Parse("https://example.org/docs/page")
	for in, want := range map[string]string{
		"":          "",
		"just text": "just text",
		"<title>no</title><h1>Tides</h1><p>See <a href='/moon'>the\n moon</a>.</p>": "# Tides\n\nSee [the moon](https://example.org/moon).",
		"<p>a<p>b<br>c": "a\n\nb\nc",
		"<p>one <b>two</b> <i>three</i><code>x</code> end": "one **two** *three*`x` end",
		"<b> spaced </b>x": "**spaced** x",
		"a<b></b>b":        "ab",
		"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e":                                           "- a\n- b\n  - c\n- d\n\ne",
		"<ol start=3><li>a<li><p>b</p><p>c</p></ol>":                                        "3. a\n4. b\n\n   c",
		"x<pre>a\n  b\n\n<b>c</b></pre>y":                                                   "x\n\n```\na\n  b\n\nc\n```\n\ny",
		"<blockquote>a<p>b</p></blockquote>c":                                               "> a\n>\n> b\n\nc",
		"<table><tr><th>A<th>B|C<tr><td>1 <b>x</b><td><p>2</p>3</table>z":                   "| A | B\\|C |\n| --- | --- |\n| 1 **x** | 2 3 |\n\nz",
		"<script>no</script><style>no</style><p hidden>no</p><svg><text>no</text></svg>yes": "yes",
		"<a href='javascript:x'>j</a> <a href='#top'>t</a> <a href='x y(1)'>s</a>":          "j t [s](https://example.org/docs/x%20y%281%29)",
		"<img alt='a cat'><a href=z><img alt=dog></a>":                                      "![a cat][![dog]](https://example.org/docs/z)",
		"<div>a</div><div>b</div>&lt;c&gt; &amp; d&nbsp;e":                                  "a\nb\n<c> & d\u00a0e",
		"<h2>x</h2><hr><h3>y</h3>":                                                          "## x\n\n---\n\n### y",
		"<table><tr><td><table><tr><td>in</table><td>b</table>":                             "| in | b |\n| --- | --- |",
	} {
		if got := FromHTML([]byte(in), base); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", in, got, want)
		}
	}
	if got := FromHTML([]byte("<a href='/x'>y</a>"), nil); got != "[y](/x)" {
		t.Error(got)
	}
}

// TestDeep: nesting costs neither the stack nor time, and the text is kept.
func TestDeep(t *testing.T) {
	for _, tag := range []string{"div", "b", "ul><li", "blockquote", "span", "table><tr><td"} {
		page := strings.Repeat("<"+tag+">", 400) + "deep"
		if got := FromHTML([]byte(page), nil); !strings.Contains(got, "deep") {
			t.Errorf("%s: %d bytes without the text", tag, len(got))
		}
	}
}

func FuzzFromHTML(f *testing.F) {
	f.Add("<h1>x</h1><ul><li>a<pre>\n b</pre><table><tr><td>c|d</table>")
	f.Add("<blockquote><ol><li><b>x</b> <a href=y>z</a>")
	f.Fuzz(func(t *testing.T, page string) {
		got := FromHTML([]byte(page), nil)
		if utf8.ValidString(page) && !utf8.ValidString(got) {
			t.Errorf("%q: not UTF-8: %q", page, got)
		}
	})
}
