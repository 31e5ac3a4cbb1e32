package builtin

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/lazy"
)

// families are programs whose first argument says what they do: an approval of
// "git status" is none of "git push".
const families wordList = "git gh npm npx yarn pnpm bun go cargo docker podman kubectl helm dotnet mvn gradle pip pip3 poetry uv conda brew apt apt-get dnf yum apk systemctl terraform aws az gcloud"

// launchers are programs that run what their arguments or their input say, or
// change what later names mean: their own name says nothing.
const launchers wordList = "eval exec source . sh bash zsh dash ksh fish csh tcsh busybox env sudo su doas xargs parallel nohup timeout nice ionice setsid stdbuf watch command builtin " +
	"time ssh alias trap enable hash set shopt unset export declare typeset readonly local chroot unshare nsenter script expect npx bunx uvx pnpx pipx corepack read mapfile readarray getopts let fc bind complete " +
	"compgen compopt jobs wait pushd popd dirs toybox strace ltrace perf valgrind gdb lldb flock chrt taskset numactl systemd-run runuser pkexec unbuffer rlwrap entr tmux screen " +
	"at batch crontab fakeroot proot bwrap firejail setarch linux32 linux64 dbus-run-session xvfb-run awk gawk mawk nawk ed ex dc osascript"

// inline are programs that run a file, and their options that give them the
// program itself, or a part of it.
var inline = [][2]string{
	{"python", "c"}, {"pypy", "c"}, {"node", "ep"}, {"nodejs", "ep"}, {"deno", "ep"}, {"bun", "ep"},
	{"perl", "eE"}, {"ruby", "e"}, {"php", "rRBEF"}, {"lua", "e"}, {"luajit", "e"}, {"Rscript", "e"},
	{"julia", "eE"}, {"pwsh", "cCeE"}, {"powershell", "cCeE"}, {"tclsh", ""},
}

// readers are programs that only look, whatever their arguments.
const readers wordList = "cat head tail wc echo printf pwd date whoami id uname hostname which type stat du df ls cmp diff grep egrep fgrep basename dirname realpath readlink true false test [ cut tr nl tac rev md5sum sha1sum sha256sum cksum jq column fold seq sleep ps free uptime nproc"

// gitReaders are git's commands that only look, with the arguments below aside.
const gitReaders wordList = "status log show diff blame ls-files ls-tree rev-parse describe shortlog cat-file rev-list merge-base"

// wordList is words with a blank between them. It is looked through as it stands:
// such lists cost nothing until they are needed, and are short.
type wordList string

func (l wordList) has(word string) bool {
	for w := range strings.SplitSeq(string(l), " ") {
		if w == word {
			return true
		}
	}
	return false
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
	if launchers.has(base) || strings.HasPrefix(name, exactly) || strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld.so") {
		return name, false
	}
	if runsInline(base, words) || opens(base, words) || name != "[" && strings.ContainsAny(name, "*?[") {
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
	if !families.has(base) {
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
	id = name + " " + words[1]
	return id, base != "git" || words[1] != "config" || len(words) > 2 && (words[2] == "--get" || words[2] == "--list" || words[2] == "-l")
}

// runsInline reports whether an interpreter gets its program with the command, or
// from its input: another one each time.
func runsInline(base string, words []string) bool {
	name := strings.TrimRight(base, "0123456789.")
	i := slices.IndexFunc(inline, func(p [2]string) bool { return p[0] == name })
	if i < 0 {
		return base == "sed" && !harmlessSed(words[1:])
	}
	letters := inline[i][1]
	for _, w := range words[1:] {
		switch {
		case w == "-" || w == "--eval" || w == "--print" || strings.HasPrefix(w, "--eval=") || strings.HasPrefix(w, "--print="):
			return true
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w[1:], letters):
			return true
		case !strings.HasPrefix(w, "-"):
			return false // a file: what follows is for it
		}
	}
	return len(words) == 1
}

// opens reports whether options make a program run another, or write a file that
// its name tells nothing of.
func opens(base string, words []string) bool {
	if (base == "test" || base == "[") && (slices.Contains(words, "-v") || slices.Contains(words, "-R")) {
		return true // [ -v 'a[$(cmd)]' ] runs cmd
	}
	prefixes := map[string][]string{
		"git":   {"-O", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--exec", "-x", "--ext-diff", "--textconv", "--output", "--extcmd", "ext::"},
		"tar":   {"--to-command", "--checkpoint-action", "-I", "--use-compress-program", "--rsh-command", "-F", "--info-script", "--new-volume-script"},
		"rsync": {"-e", "--rsh", "--rsync-path"}, "scp": {"-S", "-o"}, "sftp": {"-S", "-o"}, "sort": {"--compress-program"}, "rg": {"--pre", "--hostname-bin"},
		"man": {"-P", "--pager", "-H"}, "less": {"+", "-k", "--lesskey"}, "zip": {"-TT", "--unzip-command"}, "vim": {"-c", "+", "--cmd", "-S"}, "vi": {"-c", "+"},
		"curl": {"-K", "--config"}, "wget": {"--use-askpass", "-e", "--execute"}, "make": {"--eval", "-E", "SHELL="}, "split": {"--filter"},
	}[base]
	return slices.ContainsFunc(words[1:], func(w string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(w, p) })
	})
}

// sedScript is one command of sed that prints, deletes, ends or replaces, and
// neither runs nor writes anything.
var sedScript = lazy.Value[*regexp.Regexp]{Make: func() *regexp.Regexp {
	const address = `([0-9]+|\$|/[^/\\\n]*/)?(,([0-9]+|\$|\+[0-9]+|/[^/\\\n]*/))?!?`
	replace := func(sep string) string {
		part := `([^` + sep + `\\\n]|\\[^` + sep + `\n])*`
		return `|s[` + sep + `]` + part + `[` + sep + `]` + part + `[` + sep + `][gpiI0-9]*`
	}
	return regexp.MustCompile(`^` + address + `([pdq=]` + replace("/") + replace("|") + replace("#") + `)$`)
}}

// harmlessSed reports whether all of sed's scripts are such.
func harmlessSed(args []string) bool {
	scripts, given := []string{}, false
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "-e" || w == "--expression":
			if i++; i == len(args) {
				return false
			}
			scripts, given = append(scripts, args[i]), true
		case strings.HasPrefix(w, "--"):
			if w != "--quiet" && w != "--silent" && w != "--regexp-extended" && w != "--in-place" && w != "--null-data" && w != "--separate" && w != "--version" && w != "--help" {
				return false
			}
		case strings.HasPrefix(w, "-"):
			if strings.Trim(w[1:], "nErsuzi") != "" {
				return false
			}
		case !given && len(scripts) == 0:
			scripts = append(scripts, w)
		}
	}
	return !slices.ContainsFunc(scripts, func(s string) bool { return !sedScript.Get().MatchString(s) })
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
		if len(words) < 2 || !static[1] || !gitReaders.has(words[1]) {
			return false
		}
		return !slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(w, "--output") || strings.HasPrefix(w, "--ext-diff") || strings.HasPrefix(w, "--textconv") || strings.HasPrefix(w, "--open-files-in-pager")
		}) && !slices.Contains(static, false)
	case "hostname", "date":
		return len(words) == 1 || base == "date" && !slices.ContainsFunc(words, func(w string) bool { return w == "-s" || strings.HasPrefix(w, "--set") })
	}
	return readers.has(base)
}
