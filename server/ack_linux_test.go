package server

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A conversation of short messages makes the system put acknowledgements off; what
// was read is acknowledged at once all the same.
func TestAcknowledgesAtOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	c, ok := promptly(accepted).(*acknowledging)
	if !ok {
		t.Fatalf("%T is not made to acknowledge", accepted)
	}
	quick := func() (on int) {
		t.Helper()
		if err := c.raw.Control(func(fd uintptr) { on, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK) }); err != nil {
			t.Fatal(err)
		}
		return on
	}
	var buf [8]byte
	for range 10 {
		for _, way := range [][2]net.Conn{{peer, c}, {c, peer}} {
			if _, err := way[0].Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := way[1].Read(buf[:]); err != nil {
				t.Fatal(err)
			}
			if way[1] == net.Conn(c) && quick() != 1 {
				t.Fatal("acknowledgements are put off after a read")
			}
		}
	}
}
