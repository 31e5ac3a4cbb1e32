module github.com/transom-run/transom

go 1.26
