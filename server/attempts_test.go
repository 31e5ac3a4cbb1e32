package server

import (
	"net"
	"testing"
	"time"
)

func TestAttempts(t *testing.T) {
	var a attempts
	now := time.Now()
	for range freeFailures - 1 {
		a.failed("h", now)
	}
	if d := a.wait("h", now); d != 0 {
		t.Errorf("waits %v after few failures", d)
	}
	last := time.Duration(0)
	for range 200 {
		a.failed("h", now)
		d := a.wait("h", now)
		if d < last || d < firstWait || d > mostWait {
			t.Fatalf("waits %v after %v", d, last)
		}
		last = d
	}
	if last != mostWait {
		t.Errorf("waits %v at most", last)
	}
	if a.wait("other", now) != 0 {
		t.Error("another address waits")
	}
	if a.wait("h", now.Add(forgetTime+1)) != 0 {
		t.Error("nothing is forgotten")
	}
	a.failed("h", now.Add(forgetTime+1))
	if a.wait("h", now.Add(forgetTime+2)) != 0 {
		t.Error("one failure after a pause counts as many")
	}
}

// However many addresses guess, what is remembered is bounded, and who comes from a
// new one when all is full waits with the others.
func TestAttemptsBounded(t *testing.T) {
	var a attempts
	now := time.Now()
	for i := range 3 * maxAddresses {
		a.failed((&net.IPAddr{IP: net.IPv4(byte(i>>24), byte(i>>16), byte(i>>8), byte(i))}).String(), now)
	}
	if n := len(a.byHost); n > maxAddresses+1 {
		t.Errorf("%d addresses are remembered", n)
	}
	for range 10 {
		a.failed("late", now.Add(2*forgetTime))
	}
	if n := len(a.byHost); n > 2 || a.wait("late", now.Add(2*forgetTime)) == 0 {
		t.Errorf("%d addresses are left", n)
	}
}

func TestHostOf(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1", "[::1]:80": "::1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
	} {
		addr, err := net.ResolveTCPAddr("tcp", in)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostOf(addr); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	if hostOf(&net.UnixAddr{Name: "x", Net: "unix"}) != "unix" || hostOf(nil) != "" {
		t.Error("what has no port")
	}
}
