package server_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/transom-run/transom/server"
)

// evil is a request that a page would like to have run.
const evil = `{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"sessionId":"from-a-page"}}`

// A page in a browser can make it connect to any port of this machine, under any
// name (DNS rebinding), and send bytes of its choice behind a request line: none of
// that is ever taken for a message. The connection is closed, and nothing has run.
func TestBrowserBytes(t *testing.T) {
	body := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(evil), evil)
	post := func(target, headers, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: evil.example:3000\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s",
			target, headers, len(body), body)
	}
	for name, raw := range map[string]string{
		"get":                       "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"get with a colon":          "GET /a:b HTTP/1.1\r\nHost: localhost\r\n\r\n" + body,
		"post":                      post("/", "", evil),
		"post to a path with colon": post("/a:b", "", evil),
		"post to a colon alone":     post("/:", "", evil),
		"post with frames in it":    post("/:", "", body+body),
		"a proxy's form":            post("http://127.0.0.1:3000/", "", evil),
		"connect":                   "CONNECT 127.0.0.1:3000 HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n\r\n" + body,
		"preflight":                 "OPTIONS /x:y HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n" + body,
		"websocket":                 "GET /:x HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nContent-Length: 2\r\n\r\n{}" + body,
		"HTTP/2":                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + body,
		"HTTP/0.9":                  "GET /:\r\n" + body,
		"line feeds alone":          strings.ReplaceAll(post("/:", "", evil), "\r\n", "\n"),
		"a tab for a blank":         "POST\t/a:b\tHTTP/1.1\r\n" + body,
		"before it, empty lines":    "\r\n\r\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t)
			c := w.tcp(t)()
			io.WriteString(c.conn, raw) // may be cut off by the other side's closing
			c.awaitClosed()
			nothingRan(t, w, c)
		})
	}
}

// nothingRan checks that a connection was told of one fault, and that no session
// came to be.
func nothingRan(t *testing.T, w *world, c *client) {
	t.Helper()
	for i := range c.count() {
		if f := c.at(i); string(f.ID) != "null" {
			t.Errorf("answered %s", f.Result)
		}
	}
	if got, err := w.rt.Sessions(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("sessions: %v %v", got, err)
	}
}

// The same from real clients: Go's for HTTP, and one that begins with TLS.
func TestBrowserClients(t *testing.T) {
	w := newWorld(t, nil, server.Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go w.srv.Serve(t.Context(), ln)
	addr := ln.Addr().String()
	for _, path := range []string{"/", "/a:b", "/:"} {
		resp, err := http.Post("http://"+addr+path, "text/plain", strings.NewReader(evil))
		if err == nil {
			answer, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			t.Errorf("%s was answered %s %s", path, resp.Status, answer)
		}
	}
	if c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}); err == nil {
		c.Close()
		t.Error("TLS was spoken")
	}
	if got, err := w.rt.Sessions(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("sessions: %v %v", got, err)
	}
}

// FuzzBrowser: whatever stands in the request line and the headers of a page's
// request, nothing of its body is run.
func FuzzBrowser(f *testing.F) {
	f.Add("POST", "/a:b", "X: y")
	f.Add("GET", "/", "Sec-WebSocket-Key: x")
	f.Add("M-SEARCH", "*", "Content-Length: 3\r\nA: b")
	f.Fuzz(func(t *testing.T, method, target, headers string) {
		// What browsers let nobody put there.
		if method == "" || strings.ContainsAny(method, " \r\n\t:\x00") || target == "" || strings.ContainsAny(target, " \r\n\x00") {
			return
		}
		w := play(t)
		c := w.connect(t)
		raw := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\n\r\n%s", method, target, headers, len(evil), evil)
		if _, err := io.Copy(c.conn, bytes.NewReader(raw)); err == nil {
			c.conn.Close()
		}
		c.awaitClosed()
		nothingRan(t, w, c)
	})
}
