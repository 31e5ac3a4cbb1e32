// Package archtest holds the rules of the architecture as tests: which package
// may import which, that every package says what it is for, how long files and
// functions may be, and which calls are banned, each with its reason.
//
// It has no code of its own.
package archtest
