package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

const (
	// MaxBytes is how many bytes an image may have where no one says how many the
	// model takes: 5 MiB in base64, the most that Anthropic's API takes.
	MaxBytes = 5 << 20 / 4 * 3
	// MaxEdge is how many pixels an image may be wide or high. Anthropic's API
	// refuses larger ones beside many others, and models scale them down anyway.
	MaxEdge = 2000
	// MaxDecoded is how many bytes the pixels of an image may need to be decoded.
	MaxDecoded = 256 << 20
	// MaxSource is how many bytes of an image are read at all.
	MaxSource = 30 << 20
	// maxHeader is how much of an image is looked at for its size in pixels.
	maxHeader = 1 << 20
)

// Limits is what a model takes. Zero fields are what most models take.
type Limits struct {
	Types []string // MIME types; nil: PNG, JPEG, GIF and WebP
	Bytes int      // of one image; 0: [MaxBytes]
}

// common are the types that every wire's models take.
var common = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (l Limits) takes(kind string) bool {
	types := l.Types
	if len(types) == 0 {
		types = common
	}
	return slices.ContainsFunc(types, func(t string) bool {
		t = strings.ToLower(t)
		return t == kind || t == "image/*" || t == "image/jpg" && kind == "image/jpeg"
	})
}

func (l Limits) bytes() int {
	if l.Bytes <= 0 {
		return MaxBytes
	}
	return l.Bytes
}

// codec reads images of one type.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

// codecOf is the codec of a MIME type.
func codecOf(kind string) (c codec, ok bool) {
	switch kind {
	case "image/png":
		c = codec{png.DecodeConfig, png.Decode}
	case "image/jpeg":
		c = codec{jpeg.DecodeConfig, jpeg.Decode}
	case "image/gif":
		c = codec{gif.DecodeConfig, gif.Decode} // the first picture of an animation
	case "image/webp":
		c = codec{webp.DecodeConfig, webp.Decode}
	case "image/bmp":
		c = codec{bmp.DecodeConfig, bmp.Decode}
	default:
		return c, false
	}
	return c, true
}

// Type is the MIME type of an image by its first bytes, of which 512 are enough;
// "" where it is none that this package reads.
func Type(head []byte) string {
	kind := http.DetectContentType(head)
	if _, ok := codecOf(kind); !ok {
		return ""
	}
	return kind
}

// Fit brings an image within limits, and says what it is then. One that is within
// them comes back as it is.
func Fit(ctx context.Context, data []byte, lim Limits) (fitted []byte, mime string, err error) {
	kind := Type(data)
	if kind == "" {
		return nil, "", errors.New("it is no PNG, JPEG, GIF, WebP or BMP image")
	}
	cfg, err := header(kind, bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, "", err
	case fits(kind, cfg, len(data), lim):
		return data, kind, nil
	}
	return remake(ctx, kind, cfg, data, lim)
}

// FitText is Fit for an image in base64, which is not even decoded from that where
// it is within the limits. What this package does not read comes back as it is,
// under the type it was given: a model may know it.
func FitText(ctx context.Context, mime, text string, lim Limits) (fittedMIME, fitted string, err error) {
	from := func(n int64) io.Reader {
		return io.LimitReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)), n)
	}
	head, _ := io.ReadAll(from(512))
	kind := Type(head)
	if kind == "" {
		return mime, text, nil
	}
	cfg, err := header(kind, from(maxHeader))
	size := base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text[max(0, len(text)-2):], "=")
	switch {
	case err != nil:
		return "", "", err
	case fits(kind, cfg, size, lim):
		return kind, text, nil
	case size > MaxSource:
		return "", "", fmt.Errorf("it has %d MB, more than can be made smaller here", size>>20)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", errors.New("its data is not base64")
	}
	if data, kind, err = remake(ctx, kind, cfg, data, lim); err != nil {
		return "", "", err
	}
	return kind, base64.StdEncoding.EncodeToString(data), nil
}

// header is the size of an image. No pixel is decoded.
func header(kind string, r io.Reader) (cfg image.Config, err error) {
	defer guard(&err)
	c, _ := codecOf(kind)
	if cfg, err = c.config(r); err != nil {
		return cfg, fmt.Errorf("it is damaged (%v)", err)
	}
	if cfg.Width <= 0 || cfg.Height <= 0 {
		return cfg, errors.New("it has no pixels")
	}
	return cfg, nil
}

func fits(kind string, cfg image.Config, size int, lim Limits) bool {
	return lim.takes(kind) && size <= lim.bytes() && cfg.Width <= MaxEdge && cfg.Height <= MaxEdge
}

// guard makes an error of a decoder's panic: nothing that a file holds may end the
// process.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = errors.New("it is damaged")
	}
}
