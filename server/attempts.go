package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// freeFailures is how many bad tokens an address may give before each further
	// attempt from there has to wait, first firstWait, twice as long after each
	// stepFailures more, up to mostWait. All of it is forgotten after forgetTime
	// without a bad token.
	freeFailures = 10
	stepFailures = 5
	firstWait    = 100 * time.Millisecond
	mostWait     = 5 * time.Second
	forgetTime   = time.Minute
	// maxStrangers is how many connections of an address may be open that have not
	// shown a good token yet; a further one closes the oldest of them.
	maxStrangers = 64
	// maxAddresses bounds what is remembered; beyond it addresses share one count.
	maxAddresses = 4096
)

// attempts slows down who guesses tokens. One connection has few attempts and one
// address few connections, so what is left of guessing is a matter of the wait. A
// good token waits as long as a bad one would, or the wait would tell them apart;
// it is never refused, or whoever shares an address (every program on this machine)
// could keep the others out.
type attempts struct {
	mu     sync.Mutex
	byHost map[string]*guesser
}

type guesser struct {
	failures  int
	last      time.Time
	strangers []*conn // the oldest first
}

// of returns an address's record. mu is held.
func (a *attempts) of(host string, now time.Time) *guesser {
	if g := a.byHost[host]; g != nil {
		return g
	}
	if a.byHost == nil {
		a.byHost = map[string]*guesser{}
	}
	if len(a.byHost) >= maxAddresses {
		for h, g := range a.byHost {
			if len(g.strangers) == 0 && now.Sub(g.last) > forgetTime {
				delete(a.byHost, h)
			}
		}
		if len(a.byHost) >= maxAddresses {
			host = ""
			if g := a.byHost[host]; g != nil {
				return g
			}
		}
	}
	g := &guesser{}
	a.byHost[host] = g
	return g
}

// enter counts a connection in that has not shown a good token yet.
func (a *attempts) enter(c *conn, now time.Time) {
	a.mu.Lock()
	g := a.of(c.host, now)
	g.strangers = append(g.strangers, c)
	var oldest *conn
	if len(g.strangers) > maxStrangers {
		oldest = g.strangers[0]
		g.strangers = slices.Delete(g.strangers, 0, 1)
	}
	a.mu.Unlock()
	if oldest != nil {
		oldest.rpc.Close()
	}
}

// leave takes a connection out that is known by now, or gone.
func (a *attempts) leave(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, host := range []string{c.host, ""} {
		g := a.byHost[host]
		if g == nil {
			continue
		}
		if i := slices.Index(g.strangers, c); i >= 0 {
			g.strangers = slices.Delete(g.strangers, i, i+1)
		}
		if len(g.strangers) == 0 && g.failures == 0 {
			delete(a.byHost, host)
		}
	}
}

// failed counts a bad token.
func (a *attempts) failed(host string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.of(host, now)
	if now.Sub(g.last) > forgetTime {
		g.failures = 0
	}
	g.failures, g.last = g.failures+1, now
}

// wait is how long the next attempt of an address is held back.
func (a *attempts) wait(host string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.byHost[host]
	if g == nil || g.failures < freeFailures || now.Sub(g.last) > forgetTime {
		return 0
	}
	return min(mostWait, firstWait<<min(10, (g.failures-freeFailures)/stepFailures))
}

// hostOf is what attempts are counted by: the address without its port, and of
// IPv6 the network, of which one guesser has all addresses.
func hostOf(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.Network()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
