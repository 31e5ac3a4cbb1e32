//go:build !unix

package hookfile

import "cmp"

// shellOf is what an entry runs on this system: a line for PowerShell, or a program.
func shellOf(e entry) (line string, argv []string) {
	if e.Exec != "" {
		return "", append([]string{e.Exec}, e.Args...)
	}
	if text := cmp.Or(e.PowerShell, e.Command); text != "" {
		return text, []string{"powershell", "-NoProfile", "-NonInteractive", "-Command", text}
	}
	return "", nil
}
