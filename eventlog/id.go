package eventlog

import (
	"fmt"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID is the longest file name that the usual file systems take, in bytes.
const maxID = 255

// CheckID says whether an id can name a session: nil, or an [ErrInvalidID] with
// the reason. An id names a directory, so it is one path element that cannot
// climb, hide, or mean a device on any system: not empty, at most 255 bytes of
// UTF-8, no slash, backslash, control character or leading dot, no dot or space
// at the end, and none of Windows' device names (CON, NUL, COM1 …).
func CheckID(id string) error {
	reason := ""
	switch {
	case id == "":
		reason = "it is empty"
	case len(id) > maxID:
		return fmt.Errorf("%w: %q… has %d bytes, at most %d are allowed", ErrInvalidID, id[:32], len(id), maxID)
	case !utf8.ValidString(id):
		reason = "it is not UTF-8"
	case id[0] == '.':
		reason = "it begins with a dot"
	case strings.ContainsAny(id, `/\`):
		reason = "it holds a path separator"
	case strings.IndexFunc(id, unicode.IsControl) >= 0:
		reason = "it holds a control character"
	case id[len(id)-1] == '.' || id[len(id)-1] == ' ':
		reason = "it ends with a dot or a space"
	case deviceName(id):
		reason = "Windows keeps the name for a device"
	case runtime.GOOS == "windows" && strings.ContainsAny(id, `<>:"|?*`):
		reason = `it holds one of <>:"|?*, which no Windows file name can`
	default:
		return nil
	}
	return fmt.Errorf("%w: %q: %s", ErrInvalidID, id, reason)
}

// deviceName reports names such as CON, nul.txt and Com7, which open a device
// whatever directory they are in.
func deviceName(id string) bool {
	base, _, _ := strings.Cut(id, ".")
	base = strings.TrimRight(base, " ")
	switch len(base) {
	case 3:
		switch strings.ToUpper(base) {
		case "CON", "PRN", "AUX", "NUL":
			return true
		}
	case 4:
		switch strings.ToUpper(base[:3]) {
		case "COM", "LPT":
			return base[3] >= '0' && base[3] <= '9'
		}
	}
	return false
}
