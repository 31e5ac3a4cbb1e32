package model

import "unicode/utf8"

// Costs that are not text, in tokens, as OpenAI publishes them for its chat
// format (a few for each message and call) and for one picture of 1024 by 1024.
const (
	tokensPerMessage = 4
	tokensPerCall    = 8
	tokensPerTool    = 10
	tokensPerImage   = 800
	tokensPerReply   = 3 // the start of the answer
)

// Weights of the classes of text, in 1/64 token. They are fitted to the o200k
// vocabulary on documentation, Go, TypeScript, Python, JSON and eight natural
// languages.
const (
	wUnit    = 64
	wWord    = 58  // a run of ASCII letters; camelCase is several
	wLetter  = 21  // each of its letters after the sixth
	wDigits  = 109 // each group of three digits
	wPunct   = 48  // the first character of a run
	wPunct2  = 6   // each further one
	wSpaces  = 19  // a run of at least two spaces
	wNewline = 51  // a run of line ends
	wLatin   = 13  // an accented letter
	wGreek   = 16  // a Greek or Cyrillic letter
	wSemitic = 22  // a Hebrew or Arabic letter
	wIndic   = 21  // a letter of South or South-East Asia
	wHan     = 42  // a Chinese character or kana
	wHangul  = 40  // a Korean syllable
	wOther   = 128 // an emoji, a symbol
	wInvalid = 64  // a byte that is not UTF-8
)

// EstimateText estimates how many tokens a text is. No vocabulary is read and
// nothing is allocated: one pass over the text.
//
// How far it is off is measured by TestEstimateOfTexts, which has the bounds, and
// told in docs/models.md.
func EstimateText(s string) int {
	sum := 0
	for i := 0; i < len(s); {
		j, w := class(s, i)
		sum += w
		i = j
	}
	return (sum + wUnit - 1) / wUnit
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// class returns the end of the run that begins at i, and its weight.
func class(s string, i int) (end, weight int) {
	c, j := s[i], i+1
	switch {
	case letter(c):
		for j < len(s) && letter(s[j]) && (s[j] >= 'a' || s[j-1] < 'a') {
			j++
		}
		return j, wWord + wLetter*max(0, j-i-6)
	case digit(c):
		for j < len(s) && digit(s[j]) {
			j++
		}
		return j, wDigits * ((j - i + 2) / 3)
	case c == ' ' || c == '\t':
		for j < len(s) && (s[j] == ' ' || s[j] == '\t') {
			j++
		}
		if j-i > 1 {
			return j, wSpaces
		}
		return j, 0 // one space belongs to the word after it
	case c == '\n' || c == '\r':
		for j < len(s) && (s[j] == '\n' || s[j] == '\r') {
			j++
		}
		return j, wNewline
	case c < utf8.RuneSelf:
		for j < len(s) && s[j] > ' ' && s[j] < utf8.RuneSelf && !letter(s[j]) && !digit(s[j]) {
			j++
		}
		return j, wPunct + wPunct2*(j-i-1)
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		return i + 1, wInvalid
	}
	return i + n, runeWeight(r)
}

func runeWeight(r rune) int {
	switch {
	case r < 0x250:
		return wLatin
	case r < 0x590:
		return wGreek
	case r < 0x780:
		return wSemitic
	case r < 0x1100:
		return wIndic
	case r >= 0x3000 && r < 0x3100, r >= 0x3400 && r < 0xa000, r >= 0xff00 && r < 0xfff0:
		return wHan
	case r >= 0xac00 && r < 0xd7b0:
		return wHangul
	default:
		return wOther
	}
}

// EstimateMessage estimates one message as a request carries it. The estimate of
// a window is the sum over its messages, so that a window which grows by a
// message needs only that one.
func EstimateMessage(m *Message) int { return SizeOfMessage(m, EstimateText) }

// SizeOfMessage is the size of one message as a request carries it, in tokens, where
// text says how many a text is.
func SizeOfMessage(m *Message, text func(string) int) int {
	n := tokensPerMessage + text(m.Text) + tokensPerImage*len(m.Images)
	for i := range m.Images {
		n += text(m.Images[i].Name)
	}
	for i := range m.Calls {
		n += tokensPerCall + text(m.Calls[i].Name) + text(m.Calls[i].Arguments)
	}
	return n
}

// EstimateTool estimates one tool definition.
func EstimateTool(t *ToolDef) int { return SizeOfTool(t, EstimateText) }

// SizeOfTool is the size of one tool definition, in tokens, where text says how many a
// text is.
func SizeOfTool(t *ToolDef, text func(string) int) int {
	return tokensPerTool + text(t.Name) + text(t.Description) + text(string(t.Parameters))
}

// EstimateRequest estimates a whole request: messages, tools, and the start of
// the answer.
func EstimateRequest(req *Request) int {
	n := tokensPerReply
	for i := range req.Messages {
		n += EstimateMessage(&req.Messages[i])
	}
	for i := range req.Tools {
		n += EstimateTool(&req.Tools[i])
	}
	return n
}
