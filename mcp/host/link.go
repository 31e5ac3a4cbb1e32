package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/tool"
)

// version is what servers are told of this client.
const version = "0.1.0"

// link is a connection to a server.
type link struct {
	host         *Host
	name         string
	cfg          mcp.Server
	session      *sdk.ClientSession
	proc         *process      // nil: the server is remote
	wire         *wire         // nil: the server is a process
	ended        chan struct{} // closed when the connection has ended
	fault        error         // why it has; set before ended is closed
	noted        chan struct{} // closed when the session was told so
	opened       chan struct{} // closed when the connection stands
	closed       chan struct{} // closed when it is taken down
	protocol     string
	instructions string
	closing      sync.Once
	clock        *clock // of the connecting

	mu      sync.Mutex
	tools   []tool.Tool // offered
	all     []mcp.Tool  // as the server lists them
	strange []string    // what is wrong with the list; not told yet
	serial  int         // of the newest listing begun
	listed  int         // of the newest listing taken
	shut    bool        // no listing begins any more
	listing sync.WaitGroup

	progress progress
}

// open connects to a server and lists its tools.
func (h *Host) open(ctx context.Context, name string, cfg mcp.Server) (*link, error) {
	limit := mcp.ConnectTime
	if cfg.Timeout > 0 {
		limit = time.Duration(cfg.Timeout) * time.Millisecond
	}
	ctx, clock, cancel := within(ctx, limit)
	defer cancel()
	l := &link{host: h, clock: clock, name: name, cfg: cfg, ended: make(chan struct{}), noted: make(chan struct{}), opened: make(chan struct{}), closed: make(chan struct{})}
	transport, err := l.transport(ctx)
	if err != nil {
		return nil, err
	}
	if l.wire != nil {
		defer context.AfterFunc(ctx, l.wire.cut)()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "transom", Version: version}, l.options())
	l.roots(client)
	l.session, err = client.Connect(ctx, transport, nil)
	if err == nil {
		if r := l.session.InitializeResult(); r != nil {
			l.protocol, l.instructions = r.ProtocolVersion, r.Instructions
		}
		err = l.list(ctx)
	}
	if err != nil {
		err = l.failure(ctx, err)
		l.close()
		return nil, err
	}
	close(l.opened)
	go func() {
		l.fault = l.session.Wait()
		close(l.ended)
	}()
	return l, nil
}

// transport makes the way to the server.
func (l *link) transport(ctx context.Context) (sdk.Transport, error) {
	switch l.cfg.Transport() {
	case "stdio":
		dir, environ := "", []string(nil)
		if l.host.cfg.Dir != nil {
			dir = l.host.cfg.Dir()
		}
		if l.host.cfg.Environ != nil {
			environ = l.host.cfg.Environ()
		}
		p, err := start(l.cfg, dir, environ, l.host.getenv())
		if err != nil {
			return nil, err
		}
		l.proc = p
		return &sdk.IOTransport{Reader: io.NopCloser(p), Writer: p, MaxLineLength: maxLine}, nil
	case "http", "sse":
		token := ""
		if l.cfg.Reach != nil {
			var err error
			if l.cfg.URL, token, err = l.cfg.Reach(ctx); err != nil {
				return nil, err
			}
		}
		if l.cfg.URL == "" {
			return nil, errors.New("its configuration names no url")
		}
		l.wire = newWire(l)
		l.wire.auth.current = l.host.token(l.name, l.cfg.URL)
		if token != "" {
			l.wire.auth.current = "Bearer " + token
		}
		client := &http.Client{Transport: l.wire}
		if l.cfg.Transport() == "sse" {
			return &sdk.SSEClientTransport{Endpoint: l.cfg.URL, HTTPClient: client, MaxEventSize: maxLine}, nil
		}
		return &sdk.StreamableClientTransport{Endpoint: l.cfg.URL, HTTPClient: client, MaxEventSize: maxLine}, nil
	}
	return nil, fmt.Errorf("its type %q is none of stdio, http and sse", l.cfg.Type)
}

// failure is why connecting failed, in words for a person.
func (l *link) failure(ctx context.Context, err error) error {
	if denied := l.denied(); denied != nil {
		return denied
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if l.proc != nil {
		if l.proc.within(100*time.Millisecond) && !l.proc.cut.Load() {
			return errors.New(l.proc.ending(nil))
		}
		if said := l.proc.stderr.String(); said != "" {
			return fmt.Errorf("%w; it printed: %s", err, said)
		}
	}
	return err
}

// denied says why a remote server refused access; nil where it did not.
func (l *link) denied() error {
	if l.wire == nil {
		return nil
	}
	return l.wire.auth.denied()
}

// statusOf is where a failed attempt leaves a server.
func statusOf(err error) mcp.Status {
	var none *mcp.ErrNoToken
	if errors.As(err, &none) {
		return mcp.NeedsAuth
	}
	return mcp.Failed
}

// pid is of the server's process; 0 is none.
func (l *link) pid() int {
	if l.proc == nil {
		return 0
	}
	return l.proc.cmd.Process.Pid
}

// goodbye bounds what a remote server is given to take note of the end.
const goodbye = time.Second

// close takes the connection down. It returns when all of it has ended.
func (l *link) close() {
	l.closing.Do(func() {
		close(l.closed)
		l.mu.Lock()
		l.shut = true
		l.mu.Unlock()
		if l.proc != nil {
			l.proc.Close() // the session notices
		}
		if l.session != nil {
			if l.wire != nil {
				cut := time.AfterFunc(goodbye, l.wire.cut)
				defer cut.Stop()
			}
			_ = l.session.Close()
		}
		if l.wire != nil {
			l.wire.cut()
		}
		l.listing.Wait()
	})
}

// ending says why the connection ended.
func (l *link) ending() string {
	if l.proc != nil {
		l.proc.within(closeGrace) // its exit status comes after its last word
		var fault error
		select {
		case <-l.ended:
			fault = l.fault
		default:
		}
		return l.proc.ending(fault)
	}
	return "the connection ended"
}

// list asks for the tools, all pages of them.
func (l *link) list(ctx context.Context) error {
	l.mu.Lock()
	l.serial++
	serial := l.serial
	l.mu.Unlock()
	r := l.session.InitializeResult()
	if r != nil && r.Capabilities != nil && r.Capabilities.Tools == nil {
		return nil // it has none
	}
	var all []*sdk.Tool
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("its tools could not be listed: %w", err)
		}
		all = append(all, t)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if serial < l.listed {
		return nil // a newer list has come
	}
	l.listed = serial
	l.tools, l.all, l.strange = l.take(all)
	return nil
}

// relist lists again, where the server says that its tools changed.
func (l *link) relist() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return
	}
	l.listing.Go(func() {
		select { // servers say so before they have answered the handshake, too
		case <-l.opened:
		case <-l.closed:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), mcp.ConnectTime)
		defer cancel()
		go func() {
			select {
			case <-l.closed:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := l.list(ctx); err != nil {
			if ctx.Err() == nil {
				l.host.warn(fmt.Sprintf("The MCP server %q said that its tools changed, and %v. Those that it had stay.", l.name, err))
			}
			return
		}
		for _, w := range l.warnings() {
			l.host.warn(w)
		}
		if l.host.cfg.Changed != nil {
			l.host.cfg.Changed()
		}
		l.changed("tools")
	})
}

func (l *link) changed(what string) {
	if l.host.cfg.ListChanged != nil {
		l.host.cfg.ListChanged(l.name, what)
	}
}

// offered are the tools for the model.
func (l *link) offered() []tool.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools
}

// described are the tools as the server lists them.
func (l *link) described() []mcp.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// warnings takes what there is to say about the list of tools.
func (l *link) warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.strange
	l.strange = nil
	return out
}

// take makes tools of what a server lists. A tool that cannot be offered is left
// out with a warning.
func (l *link) take(list []*sdk.Tool) (tools []tool.Tool, all []mcp.Tool, strange []string) {
	for _, t := range list {
		d := describe(t)
		all = append(all, d)
		if l.cfg.Tools != nil && !matches(l.cfg.Tools, t.Name) || matches(l.cfg.ExcludeTools, t.Name) {
			continue
		}
		made := l.tool(t, d)
		_, err := tool.Compile(made)
		for _, other := range tools {
			if err == nil && other.Name == made.Name {
				err = fmt.Errorf("another of its tools is called %s, too", made.Name)
			}
		}
		if err != nil {
			strange = append(strange, fmt.Sprintf("The tool %q of the MCP server %q is disabled: %v.", t.Name, l.name, err))
			continue
		}
		tools = append(tools, made)
	}
	return tools, all, strange
}

func describe(t *sdk.Tool) mcp.Tool {
	d := mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description}
	if a := t.Annotations; a != nil {
		d.ReadOnly = a.ReadOnlyHint
		if d.Title == "" {
			d.Title = a.Title
		}
	}
	if d.Title == "" {
		d.Title = t.Name
	}
	if len(t.Meta) > 0 {
		d.Meta, _ = json.Marshal(t.Meta) // it was decoded from JSON
	}
	d.Raw, _ = json.Marshal(t)
	return d
}

// toolName is what the model calls a server's tool: server and tool.
func toolName(server, name string) string { return tool.PlainName(server + "-" + name) }
