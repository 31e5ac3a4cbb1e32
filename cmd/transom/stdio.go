package main

import (
	"errors"
	"io"
	"os"
	"time"
)

// duplex is stdin and stdout as one stream.
type duplex struct{ in, out *os.File }

func (d duplex) Read(p []byte) (int, error)  { return d.in.Read(p) }
func (d duplex) Write(p []byte) (int, error) { return d.out.Write(p) }
func (d duplex) Close() error                { return errors.Join(d.in.Close(), d.out.Close()) }

// openStdio takes stdin and stdout over. Pipes and sockets are read and written
// without blocking, so that a Close from this side interrupts both.
func openStdio() io.ReadWriteCloser {
	return duplex{pollable(os.Stdin), pollable(os.Stdout)}
}

const (
	// drainQuiet is how long stdin must be silent, drainLimit how long it is read
	// in all.
	drainQuiet = 100 * time.Millisecond
	drainLimit = time.Second
)

// drainStdin reads what a client sends to a server that could not start. Clients
// write their first request before they look at the process: one that met a
// closed pipe would report that, and not what stderr says.
func drainStdin() {
	in := pollable(os.Stdin)
	if in.SetReadDeadline(time.Now().Add(drainLimit)) != nil {
		return // a file or a terminal: nobody is misled
	}
	end := time.Now().Add(drainLimit)
	var buf [4096]byte
	for {
		if _, err := in.Read(buf[:]); err != nil {
			return
		}
		quiet := time.Now().Add(drainQuiet)
		if quiet.After(end) {
			quiet = end
		}
		if in.SetReadDeadline(quiet) != nil {
			return
		}
	}
}
