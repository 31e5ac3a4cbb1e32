// Package markdown makes readable text of a web page: headings, paragraphs,
// lists, links, tables and code, in Markdown, for a model to read.
//
//	text := markdown.FromHTML(page, base)
//
//	<h1>Tides</h1><p>See <a href="/moon">the moon</a>.</p>
//	# Tides
//
//	See [the moon](https://example.org/moon).
//
// What a page has besides its text (scripts, styles, forms' inputs, hidden
// parts) is left out. Markup that makes no sense gives the text that is in it;
// nothing is an error.
package markdown

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth is how deep elements are looked into; below that only text counts.
const maxDepth = 200

// FromHTML is the text of a page. base resolves the links; nil leaves them as
// they are.
func FromHTML(page []byte, base *url.URL) string {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return bare(page) // nested deeper than the parser goes
	}
	w := &writer{base: base}
	w.node(root, 0)
	return strings.TrimSpace(w.out.String())
}

// bare is the text of a page whose structure is beyond reading.
func bare(page []byte) string {
	w := &writer{}
	z := html.NewTokenizer(bytes.NewReader(page))
	var skip atom.Atom
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(w.out.String())
		case html.StartTagToken:
			if name, _ := z.TagName(); silent(atom.Lookup(name)) && skip == 0 {
				skip = atom.Lookup(name)
			}
			w.owe()
		case html.EndTagToken:
			if name, _ := z.TagName(); atom.Lookup(name) == skip {
				skip = 0
			}
		case html.TextToken:
			if skip == 0 {
				w.text(string(z.Text()))
			}
		}
	}
}

// writer collects Markdown. Space between words and lines is owed until the next
// text comes, so that there is never more of it than needed.
type writer struct {
	out    strings.Builder
	base   *url.URL
	breaks int    // line ends owed
	space  bool   // a blank owed
	indent string // begins each line: quotes and lists
	mark   string // replaces the indentation once: the bullet of an item
	pre    int    // inside of preformatted text
	cell   int    // inside of a table cell, where lines cannot end
	tight  bool   // a mark was just opened: no blank after it
}

// block owes at least n line ends.
func (w *writer) block(n int) {
	if w.cell > 0 {
		w.owe()
		return
	}
	if w.mark == "" { // else an item has just begun
		w.breaks = max(w.breaks, n)
	}
	w.space = false
}

// flush pays what is owed before text.
func (w *writer) flush() {
	if w.breaks > 0 || w.out.Len() == 0 {
		if w.out.Len() > 0 {
			for i := range w.breaks {
				w.out.WriteByte('\n')
				if i+1 < w.breaks {
					w.out.WriteString(strings.TrimRight(w.indent, " "))
				}
			}
		}
		w.breaks, w.space = 0, false
		if w.mark != "" {
			w.out.WriteString(w.mark)
			w.mark = ""
		} else {
			w.out.WriteString(w.indent)
		}
	}
	if w.space {
		w.out.WriteByte(' ')
		w.space = false
	}
}

func (w *writer) raw(s string) {
	if s != "" {
		w.flush()
		w.out.WriteString(s)
		w.tight = false
	}
}

// open writes a mark that text follows closely.
func (w *writer) open(mark string) {
	w.raw(mark)
	w.tight = true
}

// text writes running text, its white space folded.
func (w *writer) text(s string) {
	if w.pre > 0 {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		for i, line := range strings.Split(s, "\n") {
			if i > 0 {
				w.breaks++
			}
			w.raw(line)
		}
		return
	}
	for i, f := range strings.FieldsFunc(s, folded) {
		if i > 0 || folded(rune(s[0])) {
			w.owe()
		}
		if w.cell > 0 {
			f = strings.ReplaceAll(f, "|", `\|`)
		}
		w.raw(f)
	}
	if s != "" && folded(rune(s[len(s)-1])) {
		w.owe()
	}
}

func folded(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' }

func (w *writer) owe() {
	if w.breaks == 0 && w.out.Len() > 0 && !w.tight {
		w.space = true
	}
}

func (w *writer) children(n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c, depth+1)
	}
}

func (w *writer) node(n *html.Node, depth int) {
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
		return
	case html.ElementNode:
	case html.DocumentNode:
		w.children(n, depth)
		return
	default:
		return
	}
	if depth > maxDepth {
		w.deep(n)
		return
	}
	if hidden(n) {
		return
	}
	w.element(n, depth)
}

// deep writes the text below a node without looking at the elements.
func (w *writer) deep(n *html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && (d.Parent == nil || !silent(d.Parent.DataAtom)) {
			w.text(d.Data)
		}
	}
}

// silent reports whether an element's text is not the page's.
func silent(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Head, atom.Iframe, atom.Svg,
		atom.Object, atom.Canvas, atom.Audio, atom.Video, atom.Select, atom.Textarea, atom.Button:
		return true
	}
	return false
}

func hidden(n *html.Node) bool {
	if silent(n.DataAtom) {
		return true
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "aria-hidden" && a.Val == "true" {
			return true
		}
	}
	return false
}

func (w *writer) element(n *html.Node, depth int) {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block(2)
		w.raw(strings.Repeat("#", int(n.Data[1]-'0')) + " ")
		w.children(n, depth)
		w.block(2)
	case atom.Br:
		w.block(1)
	case atom.Hr:
		w.block(2)
		w.raw("---")
		w.block(2)
	case atom.Strong, atom.B:
		w.around("**", n, depth)
	case atom.Em, atom.I:
		w.around("*", n, depth)
	case atom.Code, atom.Kbd, atom.Samp:
		if w.pre > 0 {
			w.children(n, depth)
			return
		}
		w.around("`", n, depth)
	case atom.Pre:
		w.preformatted(n, depth)
	case atom.A:
		w.link(n, depth)
	case atom.Img:
		if alt := strings.TrimSpace(attr(n, "alt")); alt != "" {
			w.raw("![" + alt + "]")
		}
	case atom.Ul, atom.Ol, atom.Menu:
		w.list(n, depth)
	case atom.Blockquote:
		w.inside("> ", "> ", func() { w.children(n, depth) })
	case atom.Table:
		w.table(n, depth)
	case atom.P, atom.Dl, atom.Figure, atom.Section, atom.Article:
		w.block(2)
		w.children(n, depth)
		w.block(2)
	case atom.Div, atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Aside, atom.Form, atom.Fieldset, atom.Li, atom.Dt, atom.Dd,
		atom.Address, atom.Details, atom.Summary, atom.Figcaption, atom.Body, atom.Tr, atom.Caption, atom.Legend, atom.Hgroup:
		w.block(1)
		w.children(n, depth)
		w.block(1)
	default:
		w.children(n, depth)
	}
}

// around puts marks around inline text, unless there is none.
func (w *writer) around(mark string, n *html.Node, depth int) {
	text := textOf(n)
	if strings.TrimSpace(text) == "" || w.pre > 0 {
		w.children(n, depth)
		return
	}
	if folded(rune(text[0])) {
		w.owe()
	}
	w.open(mark)
	w.children(n, depth)
	space := w.space
	w.space = false
	w.out.WriteString(mark)
	w.space = space
}

func (w *writer) preformatted(n *html.Node, depth int) {
	if w.cell > 0 {
		w.children(n, depth)
		return
	}
	w.block(2)
	w.raw("```")
	w.block(1)
	w.pre++
	w.children(n, depth)
	w.pre--
	w.breaks = 1
	w.raw("```")
	w.block(2)
}

func (w *writer) link(n *html.Node, depth int) {
	target := strings.TrimSpace(attr(n, "href"))
	if strings.TrimSpace(textOf(n)) == "" || w.pre > 0 {
		w.children(n, depth)
		return
	}
	if u, err := url.Parse(target); err != nil || target == "" || strings.HasPrefix(target, "#") || strings.EqualFold(u.Scheme, "javascript") || strings.EqualFold(u.Scheme, "data") {
		w.children(n, depth)
		return
	} else if w.base != nil {
		target = w.base.ResolveReference(u).String()
	}
	w.open("[")
	w.children(n, depth)
	w.space = false
	w.out.WriteString("](" + strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "\n", "").Replace(target) + ")")
}

// inside writes a part whose lines begin with something; first is what the first
// begins with.
func (w *writer) inside(first, rest string, write func()) {
	w.block(1)
	if w.out.Len() > 0 && rest == "> " {
		w.block(2)
	}
	old := w.indent
	w.mark, w.indent = old+first, old+rest
	write()
	w.indent, w.mark = old, ""
	w.block(1)
	if rest == "> " {
		w.block(2)
	}
}

func (w *writer) list(n *html.Node, depth int) {
	outer := w.indent == ""
	if outer {
		w.block(2)
	}
	number := 1
	if s, err := strconv.Atoi(attr(n, "start")); err == nil && s > 0 {
		number = s
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || c.DataAtom != atom.Li {
			w.node(c, depth+1)
			continue
		}
		bullet := "- "
		if n.DataAtom == atom.Ol {
			bullet = strconv.Itoa(number) + ". "
			number++
		}
		w.inside(bullet, strings.Repeat(" ", len(bullet)), func() { w.children(c, depth+1) })
	}
	if outer {
		w.block(2)
	}
}

// table writes a table of rows; one inside of another is its text.
func (w *writer) table(n *html.Node, depth int) {
	if w.cell > 0 {
		w.children(n, depth)
		return
	}
	w.block(2)
	first := true
	for row := range n.Descendants() {
		if row.DataAtom != atom.Tr || owner(row) != n {
			continue
		}
		cells := 0
		for c := row.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
				continue
			}
			if cells == 0 {
				w.open("| ")
			} else {
				w.open(" ")
			}
			cells++
			w.cell++
			w.children(c, depth+1)
			w.cell--
			w.space = false
			w.raw(" |")
		}
		w.space = false
		if cells > 0 {
			w.block(1)
			if first {
				w.raw("|" + strings.Repeat(" --- |", cells))
				w.block(1)
			}
			first = false
		}
	}
	w.block(2)
}

// owner is the table that a row belongs to.
func owner(n *html.Node) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Table {
			return p
		}
	}
	return nil
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf is all text below a node, images' descriptions included.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		} else if d.DataAtom == atom.Img {
			b.WriteString(attr(d, "alt"))
		}
	}
	return b.String()
}
