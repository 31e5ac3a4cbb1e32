package tokens

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var packFrom = flag.String("pack", "", "a directory with o200k_base.tiktoken and cl100k_base.tiktoken, of which the packed vocabularies are made anew")

// published are the SHA-256 sums that tiktoken checks its files by.
var published = map[string]string{
	"o200k_base":  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
	"cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

// TestVocabulariesAreOpenAIs writes each vocabulary as tiktoken's file has it, which has
// the sum that OpenAI publishes.
func TestVocabulariesAreOpenAIs(t *testing.T) {
	if *packFrom != "" {
		for name := range published {
			pack(t, name)
		}
		t.Log("packed: build again to use them")
		return
	}
	for name, h := range map[string]*holder{"o200k_base": &o200k, "cl100k_base": &cl100k} {
		v := h.get()
		var file bytes.Buffer
		for rank := range v.ends {
			file.WriteString(base64.StdEncoding.EncodeToString(v.token(uint32(rank))) + " " + strconv.Itoa(rank) + "\n")
		}
		sum := sha256.Sum256(file.Bytes())
		if got := hex.EncodeToString(sum[:]); got != published[name] {
			t.Errorf("%s has the sum %s, OpenAI's %s", name, got, published[name])
		}
		for rank := range v.ends {
			if got := v.find(v.token(uint32(rank))); got != uint32(rank) {
				t.Fatalf("%s: token %d is found as %d", name, rank, got)
			}
		}
	}
}

// pack writes a vocabulary of tiktoken as the program has it.
func pack(t *testing.T, name string) {
	raw, err := os.ReadFile(filepath.Join(*packFrom, name+".tiktoken"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != published[name] {
		t.Fatalf("%s.tiktoken is not OpenAI's file", name)
	}
	var lengths, text []byte
	for line := range strings.Lines(string(raw)) {
		token, rank, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := base64.StdEncoding.DecodeString(token)
		if err != nil || rank != strconv.Itoa(len(lengths)) || len(b) > 255 {
			t.Fatalf("%s: rank %q: %v", name, rank, err)
		}
		lengths, text = append(lengths, byte(len(b))), append(text, b...)
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(lengths)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(text)))
	for _, b := range [][]byte{head, lengths, text} {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".bin", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
