package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"

	"github.com/transom-run/transom/internal/lazy"
)

// one lets one image at a time be decoded.
var one = lazy.Value[chan struct{}]{Make: func() chan struct{} { return make(chan struct{}, 1) }}

// remake makes an image anew, smaller or of another type.
func remake(ctx context.Context, kind string, cfg image.Config, data []byte, lim Limits) (out []byte, mime string, err error) {
	if int64(cfg.Width)*int64(cfg.Height) > MaxDecoded/perPixel(kind, cfg) {
		return nil, "", fmt.Errorf("it has %dx%d pixels, more than can be made smaller here", cfg.Width, cfg.Height)
	}
	if !lim.takes("image/png") && !lim.takes("image/jpeg") {
		return nil, "", fmt.Errorf("the model takes neither it nor a PNG or JPEG of it")
	}
	select {
	case one.Get() <- struct{}{}:
		defer func() { <-one.Get() }()
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	defer guard(&err)
	c, _ := codecOf(kind)
	img, err := c.decode(bytes.NewReader(data))
	if err != nil {
		return nil, "", fmt.Errorf("it is damaged (%v)", err)
	}
	turned := 1
	if kind == "image/jpeg" {
		turned = orientation(data)
	}
	edge := min(MaxEdge, max(cfg.Width, cfg.Height))
	for img = turn(scale(img, edge), turned); ; img = scale(img, edge) {
		if out, mime, err = encode(ctx, kind, img, lim); out != nil || err != nil {
			return out, mime, err
		}
		if edge = edge * 7 / 10; edge < 16 {
			return nil, "", fmt.Errorf("it cannot be brought down to %d bytes", lim.bytes())
		}
	}
}

// perPixel is how many bytes a decoded pixel takes, or more.
func perPixel(kind string, cfg image.Config) int64 {
	switch cfg.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := cfg.ColorModel.(color.Palette); ok {
		return 1
	}
	if kind == "image/jpeg" {
		return 5 // 3 at most, and the coefficients of a progressive one
	}
	return 4
}

// scale makes an image at most edge pixels wide and high.
func scale(img image.Image, edge int) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if w <= edge && h <= edge {
		return img
	}
	if w >= h {
		w, h = edge, max(1, h*edge/w)
	} else {
		w, h = max(1, w*edge/h), edge
	}
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

// encode writes an image in the best form that is small enough; nil where none is.
// A photograph becomes a JPEG; what had no loss before stays without, if it can.
func encode(ctx context.Context, kind string, img image.Image, lim Limits) ([]byte, string, error) {
	var b bytes.Buffer
	clear := !opaque(img)
	if lim.takes("image/png") && (clear || kind == "image/png" || kind == "image/gif" || kind == "image/bmp" || !lim.takes("image/jpeg")) {
		if err := png.Encode(&b, img); err != nil {
			return nil, "", errors.New("it cannot be encoded")
		}
		if b.Len() <= lim.bytes() {
			return b.Bytes(), "image/png", nil
		}
	}
	if !lim.takes("image/jpeg") {
		return nil, "", nil
	}
	if clear {
		img = onWhite(img)
	}
	for _, quality := range []int{85, 65} {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		b.Reset()
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
			return nil, "", errors.New("it cannot be encoded")
		}
		if b.Len() <= lim.bytes() {
			return b.Bytes(), "image/jpeg", nil
		}
	}
	return nil, "", nil
}

func opaque(img image.Image) bool {
	o, ok := img.(interface{ Opaque() bool })
	return !ok || o.Opaque()
}

func onWhite(img image.Image) image.Image {
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}
