package schema

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOfficialSuite runs the JSON Schema Test Suite, which comes with the module
// that infers schemas. Groups with a reference out of the schema are expected to
// be refused, and are counted.
func TestOfficialSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatalf("locate the module that holds the suite: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	for draft, uri := range map[string]string{
		"draft7":       "http://json-schema.org/draft-07/schema#",
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
	} {
		files, err := filepath.Glob(filepath.Join(root, draft, "*.json"))
		if err != nil || len(files) < 30 {
			t.Fatalf("%s: %d files, %v", draft, len(files), err)
		}
		ran, refused := 0, 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(data, &groups); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, g := range groups {
				name := draft + "/" + filepath.Base(file) + "/" + g.Description
				s, err := Compile(withDialect(string(g.Schema), uri), Options{})
				if err != nil {
					if strings.Contains(err.Error(), "points outside this schema") {
						refused++
						continue
					}
					t.Errorf("%s: %v", name, err)
					continue
				}
				for _, tt := range g.Tests {
					v, err := Parse(string(tt.Data))
					if err != nil {
						t.Errorf("%s/%s: %v", name, tt.Description, err)
						continue
					}
					ran++
					if rep := s.Validate(&v); (rep == nil) != tt.Valid {
						t.Errorf("%s/%s: valid = %t, want %t; report %v\nschema %s\ndata %s",
							name, tt.Description, rep == nil, tt.Valid, rep, g.Schema, tt.Data)
					}
				}
			}
		}
		t.Logf("%s: %d cases ran, %d groups refused for references out of the schema", draft, ran, refused)
		if ran < 850 || refused > 25 {
			t.Errorf("%s: %d cases ran and %d groups were refused; expected at least 850 and at most 25", draft, ran, refused)
		}
	}
}

// withDialect gives a schema of the suite its $schema where it has none.
func withDialect(s, uri string) string {
	if strings.HasPrefix(s, "{") && !strings.Contains(s, `"$schema"`) {
		rest := strings.TrimLeft(s[1:], " \n\t\r")
		comma := ","
		if strings.HasPrefix(rest, "}") {
			comma = ""
		}
		return `{"$schema":"` + uri + `"` + comma + s[1:]
	}
	return s
}
