package remote

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func getenv(name string) string { return map[string]string{"TOK": "s3cret-token"}[name] }

func readFile(name string) ([]byte, error) {
	switch name {
	case "/run/token":
		return []byte(" from-file\n"), nil
	case "/run/empty":
		return []byte("\n"), nil
	}
	return nil, errors.New("no such file")
}

func TestParsePeer(t *testing.T) {
	for text, want := range map[string]Peer{
		"a=tcp://127.0.0.1:7777":                            {Name: "a", Address: "127.0.0.1:7777"},
		"build-box=tcp://:7777":                             {Name: "build-box", Address: "127.0.0.1:7777"},
		"a=tcp://[::1]:7777/":                               {Name: "a", Address: "[::1]:7777"},
		"a=tcp://host.example:7777?token-env=TOK":           {Name: "a", Address: "host.example:7777", Token: "s3cret-token", TokenEnv: "TOK"},
		"a=tcp://host.example:7777?token-file=/run/token":   {Name: "a", Address: "host.example:7777", Token: "from-file"},
		"a=tcp://host.example:7777?token-file=%2Frun/token": {Name: "a", Address: "host.example:7777", Token: "from-file"},
	} {
		got, err := ParsePeer(text, getenv, readFile)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Peer{}, "Dial")); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
	for text, says := range map[string]string{
		"":                                                           "a peer needs a name",
		"tcp://127.0.0.1:7777":                                       "a peer needs a name",
		"a b=tcp://127.0.0.1:7777":                                   "a peer needs a name",
		"a/b=tcp://127.0.0.1:7777":                                   "a peer needs a name",
		"a=http://127.0.0.1:7777":                                    "tcp://HOST:PORT",
		"a=tcp://127.0.0.1":                                          "tcp://HOST:PORT",
		"a=tcp://127.0.0.1:7777/path":                                "tcp://HOST:PORT",
		"a=tcp://hunter2@127.0.0.1:7777":                             "no URL that can be used",
		"a=tcp://127.0.0.1:hunter2":                                  "no URL that can be used",
		"a=tcp://127.0.0.1:7777?token=hunter2":                       `"token" is not known`,
		"a=tcp://127.0.0.1:7777?token-env=NOPE":                      "NOPE, which is not set",
		"a=tcp://127.0.0.1:7777?token-file=/run/nope":                "no such file",
		"a=tcp://127.0.0.1:7777?token-file=/run/empty":               "is empty",
		"a=tcp://127.0.0.1:7777?token-file=/run/token&token-env=TOK": "not both",
	} {
		_, err := ParsePeer(text, getenv, readFile)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows what may be a token: %v", text, err)
		}
	}
}

func FuzzParsePeer(f *testing.F) {
	for _, s := range []string{"a=tcp://127.0.0.1:7777", "a=tcp://[::1]:1?token-env=TOK", "=", "a=tcp://x:1?token-file=/run/token", "a=tcp://u:p@x:1", "a=%zz", "a=tcp://x:1?%zz=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePeer(text, getenv, readFile)
		if err != nil {
			return
		}
		if !peerName.Get().MatchString(p.Name) || !strings.Contains(p.Address, ":") {
			t.Errorf("%q became %+v", text, p)
		}
	})
}
