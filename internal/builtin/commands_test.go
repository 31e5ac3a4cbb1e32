package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCommandLine(t *testing.T) {
	for _, tt := range []struct {
		line   string
		ids    string // of commands, "!" after those that only read
		paths  string
		urls   string
		writes bool
		plain  bool
	}{
		{line: "ls", ids: "ls!", plain: true},
		{line: "ls -la | grep x && echo 'a b' || pwd; wc -l < in.txt", ids: "ls! grep! echo! pwd! wc!", paths: "in.txt", plain: true},
		{line: "git status; git push --force; git -c alias.x='!sh' x", ids: "git status! git push git"},
		{line: "git log --output=f", ids: "git"},
		{line: "git diff; git log -3", ids: "git diff! git log!", plain: true},
		{line: "git diff --ext-diff", ids: "git"},
		{line: "git grep -Ovi x", ids: "git"},
		{line: "git config alias.x '!sh'", ids: "git config"},
		{line: "git config --get user.name", ids: "git config", plain: true},
		{line: "node --version", ids: "node", plain: true},
		{line: "go --help", ids: "go", plain: true},
		{line: "go -C x test", ids: "go"},
		{line: "go test ./... 2>&1 | tail -5", ids: "go test tail!", paths: "./...", plain: true},
		{line: "echo x > out.txt", ids: "echo!", paths: "out.txt", writes: true, plain: true},
		{line: "echo x >/dev/null 2>&1", ids: "echo!", plain: true},
		{line: "echo x &> log", ids: "echo!", paths: "log", writes: true, plain: true},
		{line: "echo x >& log", ids: "echo!", paths: "log", writes: true, plain: true},
		{line: "echo x > \"$F\"", ids: "echo!", writes: true},
		{line: "cat <<EOF\n$(rm -rf x)\nEOF", ids: "cat! rm"},
		{line: "cat <(curl http://x.org/a?b=1)", ids: "cat! curl", urls: "http://x.org/a?b=1"},
		{line: "curl -o /tmp/x 'https://example.org/a b' --data=@f/g", ids: "curl", paths: "/tmp/x @f/g", urls: "https://example.org/a", plain: true},
		{line: "$CMD x", ids: "$CMD x"},
		{line: "`echo rm` x", ids: "`echo rm` x echo!"},
		{line: "r\"m\" -rf \\/ ~/x", ids: "rm", paths: "/ ~/x", plain: true},
		{line: "sudo rm x", ids: "sudo"},
		{line: "/usr/bin/env rm x", ids: "/usr/bin/env", paths: "/usr/bin/env"},
		{line: "bash -c 'rm x'", ids: "bash"},
		{line: "xargs rm", ids: "xargs"},
		{line: "eval rm", ids: "eval"},
		{line: "PATH=/evil ls", ids: "ls!", paths: "/evil"},
		{line: "LD_PRELOAD=x ls", ids: "ls!"},
		{line: "PATH=/evil; ls", ids: "ls!", paths: "/evil"},
		{line: "for PATH in /evil; do ls; done", ids: "ls!", paths: "/evil"},
		{line: "for f in a b; do cat \"$f\"; done", ids: "cat!", plain: true},
		{line: "printf -v PATH /evil; ls", ids: "printf! ls!", paths: "/evil"},
		{line: ": ${PATH:=/evil}; ls", ids: ": ls!", paths: "/evil"},
		{line: "FOO=1 ls", ids: "ls!"},
		{line: "cat $HOME/.ssh/id", ids: "cat!"},
		{line: "cat \"$(ls)\"", ids: "cat! ls!"},
		{line: "for f in a b; do cat \"$f/../x\"; done", ids: "cat!"},
		{line: "for f in *.go; do wc -l $f; done", ids: "wc!", plain: true},
		{line: "for f do cat $f; done", ids: "cat!"},
		{line: "wc -l *.go sub/*.[ch]", ids: "wc!", paths: "sub/*.", plain: true},
		{line: "cat .*/x", ids: "cat!", paths: ".*/x"},
		{line: "cat {a,b}", ids: "cat!"},
		{line: "test $? = 0 && echo ok", ids: "test! echo!", plain: true},
		{line: "x='a[$(id)]'; echo $((x))", ids: "echo!"},
		{line: "echo $((1+1))", ids: "echo!"},
		{line: "((x))", ids: ""},
		{line: "[[ 'a[$(id)]' -eq 0 ]] || ls", ids: "ls!"},
		{line: "[[ -v 'a[$(id)]' ]]; ls", ids: "ls!"},
		{line: "[ -v 'a[$(id)]' ]; ls", ids: "[! ls!"},
		{line: "[[ -f x && a == b ]] && ls", ids: "ls!", plain: true},
		{line: "echo ${x@P}", ids: "echo!"},
		{line: "for x in 'a[$(id)]'; do echo ${y[x]} ${!x} ${z:x}; done", ids: "echo!"},
		{line: "BASH_CMDS[ls]=/evil; ls", ids: "ls!", paths: "/evil"},
		{line: "{PATH}<x; ls", ids: "ls!", paths: "x"},
		{line: "ls\r\n", ids: "ls!"},
		{line: "ls \x01", ids: "ls!"},
		{line: "'*'", ids: "*"},
		{line: "'./*' x", ids: "./*", paths: "./*"},
		{line: "jobs -x rm x", ids: "jobs"},
		{line: "compgen -C rm", ids: "compgen"},
		{line: "strace rm x", ids: "strace"},
		{line: "/lib64/ld-linux-x86-64.so.2 /bin/rm x", ids: "/lib64/ld-linux-x86-64.so.2", paths: "/lib64/ld-linux-x86-64.so.2 /bin/rm"},
		{line: "awk 'BEGIN{system(\"rm\")}'", ids: "awk"},
		{line: "python3 x.py -c y; python3.11 -m pytest -q", ids: "python3 python3.11", plain: true},
		{line: "python3 -Ic 'import os'", ids: "python3"},
		{line: "echo 1 | python3", ids: "echo! python3"},
		{line: "node -e x", ids: "node"},
		{line: "perl -ne x f", ids: "perl"},
		{line: "sed -n '1,20p' f", ids: "sed", plain: true},
		{line: "sed -i -e 's/a/b/g' -e '$d' f", ids: "sed", paths: "s/a/b/g", plain: true},
		{line: "sed 's/a/id/e' f", ids: "sed", paths: "s/a/id/e"},
		{line: "sed s/a/b/w:out f", ids: "sed", paths: "s/a/b/w:out"},
		{line: "[ -f x ] && ls", ids: "[! ls!", plain: true},
		{line: "sed -n '1e id' f", ids: "sed"},
		{line: "sed -f script f", ids: "sed"},
		{line: "tar --to-command=id -xf a.tar", ids: "tar"},
		{line: "tar -xf a.tar", ids: "tar", plain: true},
		{line: "export PATH=/evil; ls", ids: "ls!", paths: "/evil"},
		{line: "ls() { rm x; }; ls", ids: "rm ls!"},
		{line: "find . -name x", paths: ".", ids: "find!", plain: true},
		{line: "find . -delete", paths: ".", ids: "find"},
		{line: "find . -exec rm {} +", paths: ".", ids: "find"},
		{line: "find . $X", paths: ".", ids: "find"},
		{line: "./ls", ids: "./ls", paths: "./ls", plain: true},
		{line: "date; date -s x", ids: "date", plain: true},
		{line: "=x", ids: "=x"},
		{line: "npx thing", ids: "npx"},
		{line: "npm run build", ids: "npm run", plain: true},
		{line: "cd; cat x", ids: "cd! cat!"},
		{line: "cd - && ls", ids: "cd! ls!"},
		{line: "pushd x", ids: "pushd"},
		{line: "cd sub && make", ids: "cd! make", plain: true},
		{line: "echo \"a", ids: ""},
		{line: "", ids: ""},
		{line: "# only a comment", ids: ""},
		{line: "X=1", ids: ""},
	} {
		c := readCommandLine(tt.line)
		var ids []string
		for _, cmd := range c.Commands {
			id := cmd.Identifier
			if cmd.ReadOnly {
				id += "!"
			}
			ids = append(ids, id)
		}
		var urls []string
		for _, u := range c.URLs {
			urls = append(urls, u.URL)
		}
		want := strings.Fields(tt.paths)
		slices.Sort(want)
		if got := strings.Join(ids, " "); got != tt.ids || strings.Join(urls, " ") != tt.urls || c.Writes != tt.writes || c.Plain != tt.plain {
			t.Errorf("%q: %+v", tt.line, c)
		}
		if diff := cmp.Diff(want, c.Paths, cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })); diff != "" {
			t.Errorf("%q: %s", tt.line, diff)
		}
	}
}

func TestLongCommandLine(t *testing.T) {
	for _, line := range []string{strings.Repeat("a ", maxParsed), strings.Repeat("(", 5000), strings.Repeat("$(", 1500) + strings.Repeat(")", 1500)} {
		if c := readCommandLine(line); c.Plain && !c.Parsed {
			t.Errorf("%.10s…: plain", line)
		}
	}
}

func FuzzReadCommandLine(f *testing.F) {
	for _, s := range []string{"ls | grep x > y", "a=$(b <(c)) d", "cat <<E\nx\nE", "${x:=y} [[ a ]] && (b; c) &", "for i in *; do f() { :; }; done", "\"\\`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c := readCommandLine(line)
		if c.Commands == nil || c.Paths == nil || c.URLs == nil {
			t.Error("a list is nil")
		}
		if c.Plain && (!c.Parsed || len(c.Commands) == 0) {
			t.Errorf("%q is plain without a command", line)
		}
		for _, cmd := range c.Commands {
			if c.Plain && (cmd.Identifier == "" || strings.HasPrefix(cmd.Identifier, exactly)) {
				t.Errorf("%q: the identifier %q cannot be approved", line, cmd.Identifier)
			}
		}
	})
}
