package builtin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWebFetch(t *testing.T) {
	var other *httptest.Server
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if c := r.Header.Get("Cookie") + r.Header.Get("Authorization") + r.Header.Get("Referer"); c != "" {
				t.Errorf("%s was told %q", path, c)
			}
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Set-Cookie", "a=b")
			fmt.Fprint(w, body)
		})
	}
	page("/html", "text/html; charset=utf-8", "<title>t</title><h1>Tides</h1><p><a href='moon'>moon</a>")
	page("/json", "application/json", `{"a": 1}`)
	page("/latin", "text/plain; charset=ISO-8859-1", "caf\xe9")
	page("/utf16", "text/plain", "\xff\xfeh\x00i\x00=\xd8\x00\xde")
	page("/bom", "text/plain", "\xef\xbb\xbfhi")
	page("/image", "image/png", "\x89PNG\x00")
	page("/octets", "application/octet-stream", "really text")
	page("/empty", "text/html", "<p> ")
	page("/long", "text/plain", strings.Repeat("🙂", 12000))
	page("/broken", "text/plain; charset", "x\xffy")
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x", http.StatusMovedPermanently)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	other = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect to another place was followed") }))
	defer other.Close()
	r := newRig(t, func(c *Config) { c.HTTPClient = srv.Client() })

	for _, tt := range []struct{ args, want string }{
		{args("url", srv.URL+"/html#part"), "# Tides\n\n[moon](" + srv.URL + "/moon)"},
		{args("url", srv.URL+"/html", "raw", true), "<title>t</title><h1>Tides</h1><p><a href='moon'>moon</a>"},
		{args("url", srv.URL+"/json"), `{"a": 1}`},
		{args("url", srv.URL+"/here"), `{"a": 1}`},
		{args("url", srv.URL+"/latin"), "café"},
		{args("url", srv.URL+"/utf16"), "hi😀"},
		{args("url", srv.URL+"/bom"), "hi"},
		{args("url", srv.URL+"/broken"), "x\uFFFDy"},
		{args("url", srv.URL+"/octets"), "really text"},
		{args("url", srv.URL+"/empty"), srv.URL + "/empty holds no text."},
		{args("url", srv.URL+"/there"), srv.URL + "/there redirects to another place: " + other.URL + "/x\nFetch that URL if it is what you want."},
		{args("url", srv.URL+"/long", "max_length", 3, "start_index", 11999), "🙂"},
		{args("url", srv.URL+"/long", "max_length", 2, "start_index", 1), "🙂🙂\n\n[Characters 1 to 3 of 12000. Read on with start_index 3.]"},
	} {
		equal(t, r.text("web_fetch", tt.args), tt.want)
	}
	if out := r.text("web_fetch", args("url", srv.URL+"/long")); !utf8.ValidString(out) || !strings.HasSuffix(out, "[Characters 0 to 5000 of 12000. Read on with start_index 5000.]") {
		t.Error(out[len(out)-100:])
	}
	for url, want := range map[string]string{
		srv.URL + "/none": "404 Not Found", srv.URL + "/image": "not text but image/png", srv.URL + "/loop": "more than 5 times", srv.URL + "/file": "cannot be fetched",
		"file:///etc/passwd": "not an http", "https://": "names no host", "http://u:p@host/": "user name or password", "::": "not a", "http://127.0.0.1:1/": "cannot be fetched",
	} {
		r.refusal("web_fetch", args("url", url), want)
	}
	r.refusal("web_fetch", args("url", srv.URL+"/json", "start_index", 99), "past the end")
}

func TestSameSite(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"http://a/x", "http://a/y"}: true, {"http://a/", "https://A/"}: true, {"https://a/", "http://a/"}: false, {"http://a/", "http://a:81/"}: false,
		{"http://a/", "http://b.a/"}: false, {"http://a:80/", "https://a/"}: false, {"https://a/", "https://a/z"}: true,
	} {
		from, err := parseURL(pair[0])
		must(t, err)
		to, err := parseURL(pair[1])
		must(t, err)
		if got := sameSite(from, to); got != want {
			t.Errorf("%v: %v", pair, got)
		}
	}
}
