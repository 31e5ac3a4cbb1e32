package server_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/remote"
)

// benchRemote is a client of a session, directly or through another server; both
// ways go over loopback TCP.
func benchRemote(b *testing.B, through bool, replies ...modelfile.Message) (owner, c *client) {
	far := play(b, replies...)
	w := far.wire(b)
	dial := func() *client {
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			b.Fatal(err)
		}
		return newClient(b, conn)
	}
	owner = dial()
	owner.create(id1)
	if !through {
		return owner, owner
	}
	nearby := near(b, remote.Peer{Name: "far", Address: w.address})
	c = nearby.tcp(b)()
	c.follow(id1)
	return owner, c
}

// BenchmarkRemoteRequest is one small request and its answer.
func BenchmarkRemoteRequest(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(map[bool]string{false: "direct", true: "through"}[through], func(b *testing.B) {
			_, c := benchRemote(b, through)
			for b.Loop() {
				c.ok("session.mode.get", obj{"sessionId": id1})
			}
		})
	}
}

// BenchmarkRemoteTurn is one small prompt to idle.
func BenchmarkRemoteTurn(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(map[bool]string{false: "direct", true: "through"}[through], func(b *testing.B) {
			replies := make([]modelfile.Message, b.N+1)
			for i := range replies {
				replies[i] = scripted.Say("ok")
			}
			_, c := benchRemote(b, through, replies...)
			at := c.count()
			b.ResetTimer()
			for range b.N {
				c.prompt(id1, "hello")
				at = c.idle(at) + 1
			}
		})
	}
}

// BenchmarkRemoteAttach is attaching to a session with a history of many events,
// which is sent to the client, and leaving it.
func BenchmarkRemoteAttach(b *testing.B) {
	for _, events := range []int{10, 10_000} {
		b.Run(fmt.Sprint(events, " events"), func(b *testing.B) {
			far := play(b)
			w := far.wire(b)
			owner := far.connect(b)
			owner.create(id1)
			for range events {
				owner.send("session.log", obj{"sessionId": id1, "message": "a remark of some length, as hosts write them"})
			}
			owner.ok("session.mode.get", obj{"sessionId": id1})
			nearby := near(b, remote.Peer{Name: "far", Address: w.address})
			for b.Loop() {
				ours, theirs := net.Pipe()
				go nearby.srv.ServeConn(context.Background(), theirs)
				c := newClient(b, ours)
				c.ok("sessions.connect", obj{"sessionId": id1})
				c.ok("session.detach", obj{"sessionId": id1})
				ours.Close()
			}
		})
	}
}
