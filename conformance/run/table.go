package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// column is one language's part of the table.
type column struct {
	lang   *Language
	notRun string // the reason, where no case was run
	broken error  // why some or all cases could not be started
	runs   []*run
	left   []leftOut // cases that this SDK cannot express
}

// printTable writes the table, statement by language, and what failed.
// It returns the number of cases that passed and that failed.
func printTable(w io.Writer, suite *Suite, cols []*column, verbose bool) (passed, failed int) {
	width := 0
	for _, st := range suite.Statements {
		width = max(width, len(st.ID))
	}
	wide := 10
	for _, col := range cols {
		wide = max(wide, len(col.lang.Name))
	}
	fmt.Fprintf(w, "%-*s", width+2, "")
	for _, col := range cols {
		fmt.Fprintf(w, "%-*s", wide+2, col.lang.Name)
	}
	fmt.Fprintln(w)
	for _, st := range suite.Statements {
		fmt.Fprintf(w, "%-*s", width+2, st.ID)
		for _, col := range cols {
			fmt.Fprintf(w, "%-*s", wide+2, col.cell(st))
		}
		fmt.Fprintln(w, st.Says)
	}
	for _, st := range suite.Statements {
		if st.Elsewhere != "" {
			fmt.Fprintf(w, "\n%s is not seen from a host: %s", st.ID, st.Elsewhere)
		}
	}
	fmt.Fprintln(w)
	for _, col := range cols {
		if col.notRun != "" {
			fmt.Fprintf(w, "\n%s was not run: %s\n", col.lang.Name, col.notRun)
		}
		printLeft(w, col, verbose)
		for _, r := range col.runs {
			if verbose {
				fmt.Fprintf(w, "%-7s %-*s %-40s %4d ms  %s\n", r.verdict(), wide, r.lang.Name, r.c.ID, r.took.Milliseconds(), strings.Join(r.c.Shows, " "))
			}
			if len(r.errs) == 0 {
				passed++
			} else {
				failed++
			}
		}
	}
	for _, col := range cols {
		if col.broken != nil {
			fmt.Fprintf(w, "\nFAIL %s: the host could not be built or run\n%s\n", col.lang.Name, indent(col.broken.Error(), "    "))
		}
		for _, r := range col.runs {
			if len(r.errs) > 0 && !slices.Contains(r.errs, errNotStarted) {
				fmt.Fprintf(w, "\nFAIL %s: %s (%s)\n  %s\n", col.lang.Name, r.c.ID, strings.Join(r.c.Shows, " "), r.c.Says)
				for _, err := range r.errs {
					fmt.Fprintln(w, indent("- "+err.Error(), "    "))
				}
			}
		}
	}
	fmt.Fprintf(w, "\n%d passed, %d failed\n", passed, failed)
	return passed, failed
}

func (r *run) verdict() string {
	if len(r.errs) > 0 {
		return "FAIL"
	}
	return "ok"
}

// printLeft says which cases an SDK cannot express, and why, and what it cannot
// see.
func printLeft(w io.Writer, col *column, verbose bool) {
	if col.notRun != "" {
		return
	}
	cases := map[string][]string{}
	reasons := map[string]string{}
	for _, l := range col.left {
		cases[l.feature] = append(cases[l.feature], l.c.ID)
		reasons[l.feature] = l.reason
	}
	for _, typ := range slices.Sorted(maps.Keys(col.lang.Unseen)) {
		fmt.Fprintf(w, "\n%s, not compared: %s of %s (its types drop it)\n", col.lang.Name, strings.Join(col.lang.Unseen[typ], ", "), typ)
	}
	for _, feature := range slices.Sorted(maps.Keys(cases)) {
		fmt.Fprintf(w, "\n%s, not run: %d (%s)\n", col.lang.Name, len(cases[feature]), reasons[feature])
		if verbose || len(cases[feature]) < 4 {
			fmt.Fprintln(w, indent(strings.Join(cases[feature], "\n"), "    "))
		}
	}
}

// cell is ok where every case that shows the statement passed. Where the SDK
// cannot express some of them, it says how many were run.
func (col *column) cell(st Statement) string {
	if st.Elsewhere != "" {
		return "-"
	}
	ran, left := 0, 0
	for _, r := range col.runs {
		if slices.Contains(r.c.Shows, st.ID) {
			if len(r.errs) > 0 {
				return "FAIL"
			}
			ran++
		}
	}
	for _, l := range col.left {
		if slices.Contains(l.c.Shows, st.ID) {
			left++
		}
	}
	switch {
	case ran == 0:
		return "not run"
	case left > 0:
		return fmt.Sprintf("ok %d/%d", ran, ran+left)
	}
	return "ok"
}
