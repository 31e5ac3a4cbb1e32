package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
)

// noise is an image that no codec makes small, with a red corner at the top left.
func noise(w, h int) *image.NRGBA {
	img, r := image.NewNRGBA(image.Rect(0, 0, w, h)), rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	for y := range h / 4 {
		for x := range w / 4 {
			img.SetNRGBA(x, y, color.NRGBA{R: 255, A: 255})
		}
	}
	return img
}

func encoded(t testing.TB, kind string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "image/png":
		err = png.Encode(&b, img)
	case "image/jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "image/gif":
		err = gif.Encode(&b, img, nil)
	case "image/bmp":
		err = bmp.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func size(t *testing.T, data []byte) (kind string, w, h int) {
	t.Helper()
	cfg, kind, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return kind, cfg.Width, cfg.Height
}

func TestFit(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif"} {
		data := encoded(t, kind, noise(40, 30))
		got, mime, err := Fit(ctx, data, Limits{})
		if err != nil || mime != kind || &got[0] != &data[0] {
			t.Errorf("%s within the limits became %s (%v), or was copied", kind, mime, err)
		}
	}
	for _, tc := range []struct {
		name, from, to string
		w, h           int
		lim            Limits
		maxW, maxH     int
	}{
		{"too wide", "image/png", "png", MaxEdge * 2, 10, Limits{}, MaxEdge, 5},
		{"too high", "image/jpeg", "jpeg", 8, MaxEdge * 2, Limits{}, 4, MaxEdge},
		{"too many bytes", "image/png", "jpeg", 200, 100, Limits{Bytes: 30000}, 200, 100},
		{"far too many bytes", "image/jpeg", "jpeg", 200, 100, Limits{Bytes: 3000}, 199, 99},
		{"no JPEG", "image/jpeg", "png", 20, 20, Limits{Types: []string{"image/png"}}, 20, 20},
		{"only JPEG", "image/png", "jpeg", 20, 20, Limits{Types: []string{"image/JPG"}}, 20, 20},
		{"a bitmap", "image/bmp", "png", 20, 20, Limits{}, 20, 20},
		{"no GIF", "image/gif", "png", 20, 20, Limits{Types: []string{"image/jpeg", "image/png"}}, 20, 20},
	} {
		data := encoded(t, tc.from, noise(tc.w, tc.h))
		got, mime, err := Fit(ctx, data, tc.lim)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		kind, w, h := size(t, got)
		if kind != tc.to || mime != "image/"+kind || w > tc.maxW || h > tc.maxH || len(got) > tc.lim.bytes() {
			t.Errorf("%s: %s (%s) of %dx%d and %d bytes", tc.name, kind, mime, w, h, len(got))
		}
		again, _, _ := Fit(ctx, data, tc.lim)
		if !bytes.Equal(got, again) {
			t.Errorf("%s: another image the second time", tc.name)
		}
		textMIME, text, err := FitText(ctx, "image/x-any", base64.StdEncoding.EncodeToString(data), tc.lim)
		if err != nil || textMIME != mime || text != base64.StdEncoding.EncodeToString(got) {
			t.Errorf("%s: another image from base64 (%s, %v)", tc.name, textMIME, err)
		}
	}
}

// A header that promises more pixels than fit into memory is believed, and nothing
// is decoded.
func TestBomb(t *testing.T) {
	data := encoded(t, "image/png", noise(8, 8))
	binary.BigEndian.PutUint32(data[16:], 90000)
	binary.BigEndian.PutUint32(data[20:], 90000)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	for name, f := range map[string]func() error{
		"bytes": func() error { _, _, err := Fit(context.Background(), data, Limits{}); return err },
		"text": func() error {
			_, _, err := FitText(context.Background(), "image/png", base64.StdEncoding.EncodeToString(data), Limits{})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "90000x90000 pixels") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCannot(t *testing.T) {
	whole := encoded(t, "image/jpeg", noise(64, 64))
	for name, tc := range map[string]struct {
		data []byte
		lim  Limits
		want string
	}{
		"text":      {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), Limits{}, "it is no PNG"},
		"header":    {whole[:20], Limits{}, "damaged"},
		"pixels":    {encoded(t, "image/png", noise(64, 64))[:400], Limits{Bytes: 100}, "damaged"},
		"too small": {whole, Limits{Bytes: 20}, "brought down to 20 bytes"},
		"type":      {whole, Limits{Types: []string{"image/webp"}}, "takes neither"},
	} {
		if _, _, err := Fit(context.Background(), tc.data, tc.lim); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	one.Get() <- struct{}{}
	defer func() { <-one.Get() }()
	if _, _, err := Fit(gone, whole, Limits{Bytes: 100}); err != context.Canceled {
		t.Errorf("who waits for another image gets %v once it has left", err)
	}
}

// What this package does not know is passed on under its own name.
func TestUnknown(t *testing.T) {
	mime, text, err := FitText(context.Background(), "image/avif", "QUJD", Limits{})
	if mime != "image/avif" || text != "QUJD" || err != nil {
		t.Error(mime, text, err)
	}
	// A known one gets its right name.
	png := base64.StdEncoding.EncodeToString(encoded(t, "image/png", noise(4, 4)))
	if mime, text, err = FitText(context.Background(), "image/jpeg", png, Limits{}); mime != "image/png" || text != png || err != nil {
		t.Error(mime, err)
	}
}

// exif is a JPEG's segment that says how it is to be turned.
func exif(how uint16) []byte {
	tiff := []byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00")
	tiff = binary.LittleEndian.AppendUint16(tiff, how)
	tiff = append(tiff, 0, 0, 0, 0, 0, 0)
	return append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(tiff)+2)), tiff...)
}

func TestTurned(t *testing.T) {
	plain := encoded(t, "image/jpeg", noise(64, 32))
	for how, at := range map[uint16]image.Point{
		1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}, 9: {0, 0},
	} {
		data := append(append(bytes.Clone(plain[:2]), exif(how)...), plain[2:]...)
		got, _, err := Fit(context.Background(), data, Limits{Types: []string{"image/png"}})
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		b := img.Bounds()
		if upright := how >= 5 && how <= 8; upright != (b.Dy() > b.Dx()) {
			t.Errorf("%d: %v", how, b)
		}
		// The red corner is where the orientation puts it.
		r, g, _, _ := img.At(at.X*(b.Dx()-1), at.Y*(b.Dy()-1)).RGBA()
		if r>>8 < 200 || g>>8 > 90 {
			t.Errorf("%d: the corner at %v is %d %d", how, at, r>>8, g>>8)
		}
	}
}

func FuzzFit(f *testing.F) {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/bmp"} {
		f.Add(encoded(f, kind, noise(9, 7)))
	}
	f.Add(append([]byte{0xff, 0xd8}, exif(6)...))
	f.Add([]byte("RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x01\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lim := Limits{Types: []string{"image/png"}, Bytes: 1000}
		orientation(data)
		if Type(data) == "" {
			return
		}
		if cfg, err := header(Type(data), bytes.NewReader(data)); err != nil || cfg.Width*cfg.Height > 1<<16 {
			return
		}
		got, mime, err := Fit(context.Background(), data, lim)
		if err == nil && (len(got) > 1000 || mime != "image/png") {
			t.Errorf("%d bytes of %s", len(got), mime)
		}
	})
}
