package main

import "testing"

func TestSuiteFilesAgree(t *testing.T) {
	if _, err := loadSuite("../cases"); err != nil {
		t.Fatal(err)
	}
}
