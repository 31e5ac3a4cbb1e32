package policy

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Rules is what has been decided about calls beforehand. A denial goes before
// everything that allows.
type Rules struct {
	// ApproveAll: everything runs without asking. Only by explicit choice.
	ApproveAll bool
	// Granted are the keys that approvals cover: see [Grants] and [Key].
	Granted []string
	// Located are the keys of what is approved where the session works.
	Located []string
	// Denied are the keys of what must not run.
	Denied []string
	// Reads: reading files and URLs needs no approval.
	Reads bool
	// AnyURL: fetching needs no approval; otherwise what begins as one of URLs
	// does needs none.
	AnyURL bool
	URLs   []string
}

// Asks reports whether a call needs to be asked about. request and prompt are the
// question as it would be put. One about paths outside of where the session works
// is covered by no approval but that of the call itself.
func (r Rules) Asks(request, prompt json.RawMessage) bool {
	if r.ApproveAll {
		return false
	}
	var q struct {
		Kind string `json:"kind"`
		URL  string `json:"url"`
	}
	if json.Unmarshal(request, &q) == nil {
		switch {
		case r.Reads && (q.Kind == "read" || q.Kind == "url"):
			return false
		case q.Kind == "url" && (r.AnyURL || slices.ContainsFunc(r.URLs, func(p string) bool { return matchesURL(p, q.URL) })):
			return false
		}
	}
	var shown struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(prompt, &shown) == nil && shown.Kind == "path" {
		return true
	}
	keys := lasting(request)
	bare := bareKey(request)
	granted := func(k string) bool { return k != "" && (covers(r.Granted, k) || covers(r.Located, k)) }
	return len(keys) == 0 || slices.ContainsFunc(keys, func(k string) bool { return !granted(k) && !granted(bare) })
}

// Denies reports whether a rule forbids a call, or a part of it. A forbidden
// command is forbidden under every path and with every sub-command, a forbidden
// domain with all below it, a forbidden tool of an MCP server by its own name and by
// the one that models call it by. What a program that was approved does is not watched:
// "env rm" is a call of env.
func (r Rules) Denies(request json.RawMessage) bool {
	if len(r.Denied) == 0 {
		return false
	}
	if deniesTool(r.Denied, request) {
		return true
	}
	return slices.ContainsFunc(subjects(request), func(k string) bool {
		if covers(r.Denied, k) {
			return true
		}
		if id, ok := strings.CutPrefix(k, "command:"); ok {
			name, rest, sub := strings.Cut(id, " ")
			name = path.Base(name)
			return covers(r.Denied, "command:"+name) || sub && covers(r.Denied, "command:"+name+" "+rest)
		}
		for host, ok := strings.CutPrefix(k, "domain:"); ok; {
			if _, host, ok = strings.Cut(host, "."); ok && covers(r.Denied, "domain:"+host) {
				return true
			}
		}
		return false
	})
}

// covers reports whether keys name a key, or all of its kind.
func covers(keys []string, key string) bool {
	kind, of, _ := strings.Cut(key, ":")
	if slices.Contains(keys, key) || slices.Contains(keys, kind+":*") {
		return true
	}
	switch kind {
	case "mcp":
		server, _, _ := strings.Cut(key, "/")
		return slices.Contains(keys, server+"/*")
	case agentMCP:
		at := strings.LastIndexByte(key, '/')
		return slices.Contains(keys, key[:at+1]+"*") || slices.Contains(keys, "mcp:*")
	case "domain": // "*.example.org" is that domain and all below it
		for ok := true; ok; _, of, ok = strings.Cut(of, ".") {
			if slices.Contains(keys, "domain:*."+of) {
				return true
			}
		}
	}
	return false
}

// hostname is a host's name in the one form that names are compared in. Names in
// other letters than ASCII's are not brought into it: what fetches refuses them,
// since one name can be written in many ways ("ｅxample.org").
func hostname(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// matchesURL reports whether a URL is of the host that a pattern names, at or
// below its path. A pattern is a host, "*." and a domain, or either with a scheme
// or a path.
func matchesURL(pattern, raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return false
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if ok && scheme != u.Scheme {
		return false
	} else if !ok {
		rest = pattern
	}
	host, below, deep := strings.Cut(rest, "/")
	got := hostname(u.Hostname())
	if strings.Contains(host, ":") {
		host, got = strings.ToLower(host), strings.ToLower(u.Host)
	} else {
		host = hostname(host)
	}
	if domain, any := strings.CutPrefix(host, "*."); any {
		if got != domain && !strings.HasSuffix(got, "."+domain) {
			return false
		}
	} else if got != host {
		return false
	}
	below = strings.TrimSuffix(below, "/")
	if !deep || below == "" {
		return true
	}
	// A server may go up for "..", however it is written: such a path is of no
	// pattern but that of a whole host.
	if strings.Contains(u.Path, "..") || strings.Contains(u.Path, `\`) || strings.Contains(u.EscapedPath(), "%25") {
		return false
	}
	at := strings.TrimPrefix(u.EscapedPath(), "/")
	return at == below || strings.HasPrefix(at, below+"/")
}

// Key is the key of a rule as hosts write it: a kind, and what of that kind; a nil
// argument is all of it. A kind that is not known is the name of an MCP server,
// and its argument one of the server's tools.
func Key(kind string, argument *string) string {
	of := "*"
	if argument != nil && *argument != "" {
		of = *argument
	}
	switch strings.ToLower(kind) {
	case "read", "write", "memory":
		return strings.ToLower(kind)
	case "shell", "commands":
		return "command:" + of
	case "custom-tool":
		return "tool:" + of
	case "url":
		if u, err := url.Parse(of); err == nil && u.Hostname() != "" {
			of = u.Hostname()
		}
		if domain, below := strings.CutPrefix(of, "*."); below {
			return "domain:*." + hostname(domain)
		}
		return "domain:" + hostname(of)
	case "mcp":
		if of == "*" {
			return "mcp:*"
		}
		server, tool, ok := strings.Cut(strings.TrimSuffix(of, ")"), "(")
		if !ok {
			tool = "*"
		}
		return "mcp:" + server + "/" + tool
	}
	return "mcp:" + kind + "/" + of
}

// DeniedByRules is the decision about a call that a rule forbids.
func DeniedByRules() Decision {
	return Decision{Verdict: Deny, Kind: "denied-by-rules", Text: textByRules}
}
