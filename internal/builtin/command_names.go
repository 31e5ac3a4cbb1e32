package builtin

import (
	"path/filepath"
	"slices"
	"strings"
)

// families are programs whose first argument says what they do: an approval of
// "git status" is none of "git push".
var families = words("git gh npm npx yarn pnpm bun go cargo docker podman kubectl helm dotnet mvn gradle pip pip3 poetry uv conda brew apt apt-get dnf yum apk systemctl terraform aws az gcloud")

// launchers are programs that run what their arguments or their input say, or
// change what later names mean: their own name says nothing.
var launchers = words("eval exec source . sh bash zsh dash ksh fish csh tcsh busybox env sudo su doas xargs parallel nohup timeout nice ionice setsid stdbuf watch command builtin " +
	"time ssh alias trap enable hash set shopt unset export declare typeset readonly local chroot unshare nsenter script expect npx bunx uvx read mapfile readarray getopts let fc bind complete pushd popd dirs")

// readers are programs that only look, whatever their arguments.
var readers = words("cat head tail wc echo printf pwd date whoami id uname hostname which type stat du df ls cmp diff grep egrep fgrep basename dirname realpath readlink true false test [ cut tr nl tac rev md5sum sha1sum sha256sum cksum jq column fold seq sleep ps free uptime nproc")

// gitReaders are git's commands that only look, with the arguments below aside.
var gitReaders = words("status log show diff blame ls-files ls-tree rev-parse describe shortlog cat-file rev-list merge-base")

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// steering reports whether a variable decides what programs run or load.
func steering(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "SHELL", "HOME", "PROMPT_COMMAND", "PAGER", "EDITOR", "VISUAL", "BROWSER", "CDPATH",
		"SHELLOPTS", "BASHOPTS", "PS4", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH":
		return true
	}
	for _, p := range []string{"LD_", "DYLD_", "GIT_", "BASH_FUNC"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// identify names a command for approval, and says whether the name tells what
// runs.
func identify(words []string, static []bool) (id string, plain bool) {
	name := words[0]
	base := filepath.Base(name)
	if launchers[base] || strings.HasPrefix(name, exactly) {
		return name, false
	}
	if base == "printf" && slices.Contains(words, "-v") { // printf -v PATH …
		return name, false
	}
	if name == "cd" && (len(words) != 2 || !static[1] || strings.HasPrefix(words[1], "-")) { // home, or back
		return name, false
	}
	if base == "find" {
		for i, w := range words {
			if !static[i] || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || w == "-delete" || strings.HasPrefix(w, "-fprint") || w == "-fls" {
				return name, false
			}
		}
	}
	if !families[base] {
		return name, true
	}
	// Options before the command can change everything (git -c alias.x=!cmd).
	if len(words) < 2 {
		return name, true
	}
	if !static[1] {
		return name, false
	}
	if strings.HasPrefix(words[1], "-") {
		return name, len(words) == 2 // git --version
	}
	return name + " " + words[1], true
}

// readsOnly reports whether a command certainly changes nothing.
func readsOnly(words []string, static []bool) bool {
	base := filepath.Base(words[0])
	if strings.ContainsRune(words[0], filepath.Separator) && !strings.HasPrefix(words[0], "/bin/") && !strings.HasPrefix(words[0], "/usr/bin/") {
		return false // a program of that name from anywhere
	}
	switch base {
	case "cd", "rg":
		return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--pre") || strings.HasPrefix(w, "--hostname-bin") })
	case "find":
		_, plain := identify(words, static)
		return plain
	case "git":
		if len(words) < 2 || !static[1] || !gitReaders[words[1]] {
			return false
		}
		return !slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(w, "--output") || strings.HasPrefix(w, "--ext-diff") || strings.HasPrefix(w, "--textconv") || strings.HasPrefix(w, "--open-files-in-pager")
		}) && !slices.Contains(static, false)
	case "hostname", "date":
		return len(words) == 1 || base == "date" && !slices.ContainsFunc(words, func(w string) bool { return w == "-s" || strings.HasPrefix(w, "--set") })
	}
	return readers[base]
}
