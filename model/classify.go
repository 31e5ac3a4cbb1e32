package model

import "strings"

// CodeEmptyAnswer is the Code of an answer that held neither text nor calls.
// [RetryPolicy] repeats such a request once.
const CodeEmptyAnswer = "empty_answer"

// Classify sorts an HTTP answer of a provider by its status, its own error code
// and its message: which kind it is, and whether the same request may succeed a
// little later. docs/models.md has the table.
func Classify(status int, code, message string) (kind ErrorKind, retryable bool) {
	switch strings.ToLower(code) {
	case "insufficient_quota", "billing_hard_limit_reached", "quota_exceeded", "billing_not_active", "insufficient_credits", "billing_error":
		return Quota, false
	case "context_length_exceeded", "request_too_large", "exceed_context_size_error", "model_max_prompt_tokens_exceeded":
		return ContextLimit, false
	case "rate_limit_error", "rate_limit_exceeded", "too_many_requests":
		return RateLimit, true
	case "authentication_error", "permission_error", "invalid_api_key":
		return Authentication, false
	}
	switch {
	case status == 401 || status == 403:
		return Authentication, false
	case status == 402, status == 400 && strings.Contains(message, "credit balance"):
		return Quota, false
	case status == 429:
		return RateLimit, true
	case status == 413, (status == 400 || status == 422) && aboutContext(message):
		return ContextLimit, false
	case status == 408, status == 409, status == 425:
		return Query, true
	case status == 501, status == 505:
		return Query, false
	case status >= 500:
		return Query, true
	default:
		return Query, false
	}
}

// aboutContext recognises how servers without error codes say that a request is
// too long (vLLM, llama.cpp, Ollama and proxies of other vendors).
func aboutContext(message string) bool {
	m := strings.ToLower(message)
	for _, s := range []string{"maximum context length", "context length exceeded", "context window", "context size", "context limit",
		"prompt is too long", "too many tokens", "input is too long", "reduce the length of the messages"} {
		if strings.Contains(m, s) {
			return true
		}
	}
	return false
}
