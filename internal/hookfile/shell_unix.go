//go:build unix

package hookfile

import "cmp"

// shellOf is what an entry runs on this system: a line for the shell, or a program.
func shellOf(e entry) (line string, argv []string) {
	if e.Exec != "" {
		return "", append([]string{e.Exec}, e.Args...)
	}
	return cmp.Or(e.Bash, e.Command), nil
}
