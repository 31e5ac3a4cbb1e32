package server

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledging is a TCP connection that acknowledges at once what it has read.
//
// The SDK for Node.js writes the header and the body of a message by themselves.
// Its system keeps the body back until the header is acknowledged (Nagle), and
// ours waits some 40 ms for something to send the acknowledgement with: each
// request would take that long. The option does not last, the system takes it
// back at will, so it is set again after every read.
type acknowledging struct {
	*net.TCPConn
	raw syscall.RawConn
}

// promptly makes a TCP connection acknowledge at once; others stay as they are.
func promptly(rwc io.ReadWriteCloser) io.ReadWriteCloser {
	tcp, ok := rwc.(*net.TCPConn)
	if !ok {
		return rwc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return rwc
	}
	c := &acknowledging{tcp, raw}
	c.acknowledge()
	return c
}

// Read reads, and acknowledges what it read.
func (c *acknowledging) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if err == nil {
		c.acknowledge()
	}
	return n, err
}

// acknowledge sets the option. Where that fails, requests take longer and nothing
// else is lost.
func (c *acknowledging) acknowledge() {
	_ = c.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
}
