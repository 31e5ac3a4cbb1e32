package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// A script is a server that a run can be pointed at.
func TestModel(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	code := make(chan int)
	go func() {
		defer in.Close()
		code <- execute(ctx, newTestRoot(strings.NewReader(""), in, io.Discard, "model", "--script", file))
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	run(t, "", "run", "-p", "Hello", "--home", home, "--base-url", url, "--model", "demo").want(t, CodeOK, "Hello to you.")
	run(t, "", "run", "-p", "Hello", "--home", home, "--base-url", url).want(t, CodeOK, "Hello to you.") // it lists one model
	cancel()
	if c := <-code; c != CodeOK {
		t.Errorf("exit code %d", c)
	}
}

func TestModelUsage(t *testing.T) {
	run(t, "", "model").want(t, CodeUsage, "which script?")
	run(t, "", "model", "--script", "/nowhere/x.yaml").want(t, CodeUsage, "/nowhere/x.yaml")
	run(t, "", "model", "--script", script(t, helloScript), "--port", "-1").want(t, CodeFailed, "port -1")
}
