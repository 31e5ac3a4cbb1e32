package model

import "unicode/utf8"

// Tokens that a message costs beyond its text, and those of a picture: the
// figures that OpenAI publishes for its chat models (a low-detail picture).
const (
	messageOverhead = 4
	imageTokens     = 85
)

// EstimateText estimates how many tokens a text is: about one for four bytes of
// ASCII, one for each letter of scripts that tokenizers split finely. It is for
// gauges and limits, not for bills.
func EstimateText(s string) int {
	if s == "" {
		return 0
	}
	ascii := 0
	wide := 0
	for i := 0; i < len(s); i++ {
		if s[i] < utf8.RuneSelf {
			ascii++
		} else if utf8.RuneStart(s[i]) {
			wide++
		}
	}
	return (ascii+3)/4 + wide
}

// EstimateMessage estimates how many tokens a message is.
func EstimateMessage(m *Message) int {
	n := messageOverhead + EstimateText(m.Text) + EstimateText(m.Reasoning) + imageTokens*len(m.Images)
	for _, c := range m.Calls {
		n += messageOverhead + EstimateText(c.Name) + EstimateText(c.Arguments)
	}
	return n
}

// EstimateTool estimates how many tokens a tool's definition is.
func EstimateTool(t *ToolDef) int {
	return messageOverhead + EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(string(t.Parameters))
}
