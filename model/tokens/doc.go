// Package tokens counts tokens as the models of OpenAI do, with their own
// vocabularies: o200k_base and cl100k_base.
//
//	text ─▶ pieces (words with the space before them, numbers, punctuation)
//	          └─▶ a token each, or merged from bytes: the pair of the lowest rank first
//
// The vocabularies are those of OpenAI's tiktoken (MIT licence, see LICENSE.tiktoken),
// 1.4 MB in the program. One is unpacked when the first text is counted, takes about
// 5 MB, and is gone with the next garbage collection once nobody counts. A program that
// counts nothing has neither the time nor the memory of it.
//
// What is counted is text. What a provider puts around messages, tool definitions and
// pictures is taken as in model.EstimateMessage.
//
// # Ownership
//
// Vocabularies are shared and never changed. A [Counter] belongs to one goroutine at a
// time.
//
// # Errors
//
// There are none: every text has a number of tokens, also one that is not UTF-8.
package tokens
