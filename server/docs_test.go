package server_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/server"
)

var rewrite = flag.Bool("rewrite", false, "write the generated part of docs/protocol.md")

const protocolPage = "../docs/protocol.md"

// refusedTable is the last section of the page: methods by reason.
func refusedTable() string {
	byReason := map[string][]string{}
	for method, reason := range server.Refused() {
		name := "`" + shortest(method, reason) + "`"
		if !slices.Contains(byReason[reason], name) {
			byReason[reason] = append(byReason[reason], name)
		}
	}
	reasons := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return strings.Compare(slices.Min(byReason[a]), slices.Min(byReason[b]))
	})
	var b strings.Builder
	b.WriteString("| Methods | Reason |\n|---|---|\n")
	for _, r := range reasons {
		slices.Sort(byReason[r])
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(byReason[r], ", "), r)
	}
	return b.String()
}

// shortest is the shortest pattern for a method that holds for nothing with another
// answer, and for more than two methods: "session.mcp.*".
func shortest(method, reason string) string {
	refused := server.Refused()
	for at := range method {
		if method[at] != '.' {
			continue
		}
		prefix, same := method[:at+1], 0
		for other, why := range refused {
			if strings.HasPrefix(other, prefix) {
				same++
				if why != reason {
					same = -len(refused)
				}
			}
		}
		served := slices.ContainsFunc(server.Methods(), func(m string) bool { return strings.HasPrefix(m, prefix) })
		if same > 2 && !served {
			return prefix + "*"
		}
	}
	return method
}

// docs/protocol.md says what the code does.
func TestProtocolPage(t *testing.T) {
	raw, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	const mark = "`*` stands for the methods that begin so.\n\n"
	head, table, ok := strings.Cut(page, mark)
	if !ok {
		t.Fatal("the page has no section of refused methods")
	}
	if *rewrite {
		if err := os.WriteFile(protocolPage, []byte(head+mark+refusedTable()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(refusedTable(), table); diff != "" {
		t.Errorf("refused methods differ; run go test ./server -run TestProtocolPage -rewrite (-code +page)\n%s", diff)
	}
	served := head[strings.Index(head, "## Served"):strings.Index(head, "Notifications:")]
	var named []string
	for _, m := range regexp.MustCompile("(?m)^(`[^|]*) ?\\|").FindAllStringSubmatch(served, -1) {
		for _, name := range strings.Split(m[1], ",") {
			named = append(named, strings.Trim(strings.TrimSpace(name), "`"))
		}
	}
	slices.Sort(named)
	if diff := cmp.Diff(server.Methods(), named); diff != "" {
		t.Errorf("served methods differ (-code +page)\n%s", diff)
	}
	for _, k := range transom.Kinds() {
		if code := fmt.Sprint(server.Code(k)); !strings.Contains(head, "`"+string(k)+"`") || !strings.Contains(head, code) {
			t.Errorf("the page does not name kind %s with code %s", k, code)
		}
	}
}

// No method is both served and refused, and each refusal reads well.
func TestRefusals(t *testing.T) {
	refused := server.Refused()
	for _, m := range server.Methods() {
		if _, both := refused[m]; both {
			t.Errorf("%s is served and refused", m)
		}
	}
	for m, reason := range refused {
		if reason == "" || strings.Contains(reason, "Unhandled method") {
			t.Errorf("%s: %q", m, reason)
		}
	}
	if n := len(refused) + len(server.Methods()); n < 360 {
		t.Errorf("only %d methods are known: the list is broken", n)
	}
	w := play(t)
	c := w.connect(t)
	for m := range refused {
		c.fails(-32014, m, obj{"sessionId": id1})
	}
}
