package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/stack"
	"github.com/transom-run/transom/remote"
)

// ProtocolVersion is the version of the SDKs' protocol that is served.
const ProtocolVersion = 3

// Config is what [New] needs. Runtime is required.
type Config struct {
	// Runtime holds the sessions. The caller closes it after Shutdown.
	Runtime *transom.Runtime
	// Token must be given by every client in its connect request; "" asks for
	// none.
	Token string
	// Logger gets what no client is told; nil is silence. Tokens and prompts are
	// never logged.
	Logger *slog.Logger
	// CloseTimeout bounds how long runtime.shutdown waits for the sessions to be
	// written out; 0 is 5 s.
	CloseTimeout time.Duration
	// Linger bounds how long the client that was answered its runtime.shutdown may
	// stay before [Server.Stopped] says that the process may end; 0 is 2 s. The
	// SDKs end the process that they launched themselves once they have the
	// answer, and report a failure where it was faster.
	Linger time.Duration
	// MaxQueueBytes bounds what waits to be sent to one client; beyond it the
	// client has stopped reading and its connection is closed. 0 is 64 MiB.
	MaxQueueBytes int64
	// MaxFrameBytes is the largest message taken; 0 is 64 MiB.
	MaxFrameBytes int64
	// Extensions lets sessions whose clients ask for them run the extensions of
	// their projects, and those of the runtime's home: programs with all the rights
	// of the server's user.
	Extensions bool
	// Peers are other servers, to whose sessions clients may attach here.
	Peers []remote.Peer
}

// Server serves one Runtime on any number of connections. Its methods may be
// called from any goroutine.
type Server struct {
	cfg   Config
	token [sha256.Size]byte // of Config.Token
	// served are the methods: the package's own, which the handlers themselves must
	// not name.
	served func() map[string]handler

	mu        sync.Mutex
	conns     map[*conn]struct{}
	listeners map[net.Listener]struct{}
	closing   bool
	exposed   map[string]*exposure      // sessions of peers, by id
	beside    map[string]*extensionHost // extensions, by the session's id
	keepers   keepers

	attempts attempts // of clients that have no good token yet

	stopped  chan struct{} // closed after runtime.shutdown: see Stopped
	stopOnce sync.Once
	closeRT  sync.Once
	rtClosed error // of Runtime.Close; written inside closeRT
	running  sync.WaitGroup
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 5 * time.Second
	}
	if cfg.Linger <= 0 {
		cfg.Linger = 2 * time.Second
	}
	return &Server{
		cfg: cfg, served: methods.Get, token: sha256.Sum256([]byte(cfg.Token)), conns: map[*conn]struct{}{},
		listeners: map[net.Listener]struct{}{}, stopped: make(chan struct{}),
	}
}

// Stopped is closed once a client's runtime.shutdown was carried out and
// answered, and that client has gone or Config.Linger has passed: the process may
// end.
func (s *Server) Stopped() <-chan struct{} { return s.stopped }

// ErrServerClosed is returned by Serve and ServeConn after Shutdown.
var ErrServerClosed = errors.New("server: closed")

// ServeConn serves one connection, which it owns, until either side closes it or
// ctx ends. Sessions that were attached through it are dropped as those of a lost
// client are. It returns nil after an orderly end.
func (s *Server) ServeConn(ctx context.Context, rwc io.ReadWriteCloser) error {
	stack.Grow() // messages are read here, and most are answered
	c := newConn(s, promptly(rwc))
	if !s.enter(c) {
		rwc.Close()
		return ErrServerClosed
	}
	defer s.leave(c)
	return c.serve(ctx)
}

// enter counts a connection in; false after Shutdown began.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.running.Done()
}

// Serve accepts connections and serves them until ctx ends, Shutdown is called or
// the listener fails. It closes the listener. Connections that are open go on;
// Shutdown ends them.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, ln)
		s.mu.Unlock()
	}()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	for {
		nc, err := ln.Accept()
		if err != nil {
			if ended := s.ended(ctx); ended != nil {
				return ended
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return err
		}
		go func() {
			peer := nc.RemoteAddr().String()
			if err := s.ServeConn(ctx, nc); err != nil && !errors.Is(err, context.Canceled) {
				s.cfg.Logger.Info("connection ended", "peer", peer, "error", err)
			}
		}()
	}
}

// ended tells why accepting must stop; nil where it need not.
func (s *Server) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return ErrServerClosed
	}
	return nil
}

// Shutdown stops accepting, lets what is queued be written, closes every
// connection, and waits for all of them to end, or for ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for ln := range s.listeners {
		ln.Close()
	}
	for c := range s.conns {
		c.rpc.Close()
	}
	s.mu.Unlock()
	all := make(chan struct{})
	go func() {
		s.running.Wait()
		close(all)
	}()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeRuntime takes all sessions out of the process, once.
func (s *Server) closeRuntime() error {
	s.closeRT.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
		defer cancel()
		s.rtClosed = s.cfg.Runtime.Close(ctx)
	})
	return s.rtClosed
}

// authorized compares a token in constant time.
func (s *Server) authorized(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

// reap drops the attachments of connections that are known to have ended, so that
// a client that comes back does not meet its own past.
func (s *Server) reap() {
	s.mu.Lock()
	var gone []*conn
	for c := range s.conns {
		if c.rpc.Context().Err() != nil {
			gone = append(gone, c)
		}
	}
	s.mu.Unlock()
	for _, c := range gone {
		c.drop()
	}
}
