package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The methods about how calls are approved.
func permissionMethods() map[string]handler {
	return map[string]handler{
		"session.permissions.configure":             posted(configurePermissions),
		"session.permissions.modifyRules":           posted(modifyRules),
		"session.permissions.setApproveAll":         posted(setApproveAll),
		"session.permissions.getMode":               settled(permissionMode),
		"session.permissions.setMode":               posted(setPermissionMode),
		"session.permissions.setRequired":           posted(setRequired),
		"session.permissions.resetSessionApprovals": posted(resetApprovals),
		"session.permissions.notifyPromptShown":     posted(promptShown),

		"session.permissions.paths.list":                           settled(listPaths),
		"session.permissions.paths.add":                            posted(addPath),
		"session.permissions.paths.updatePrimary":                  posted(setPrimary),
		"session.permissions.paths.isPathWithinAllowedDirectories": settled(withinAllowed),
		"session.permissions.paths.isPathWithinWorkspace":          settled(withinPrimary),
		"session.permissions.urls.setUnrestrictedMode":             posted(setAnyURL),

		"session.permissions.locations.resolve":         inRuntime(resolveLocation),
		"session.permissions.locations.apply":           inRuntime(applyLocation),
		"session.permissions.locations.addToolApproval": inRuntime(addToolApproval),
		"session.permissions.folderTrust.isTrusted":     inRuntime(isTrusted),
		"session.permissions.folderTrust.addTrusted":    inRuntime(addTrusted),
	}
}

// inRuntime is a method of an attached session that works with what the runtime
// keeps for all of them: like filed.
func inRuntime[P any, T aimed[P]](f func(ctx context.Context, rt *transom.Runtime, s *transom.Session, p *P) (any, error)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		filed[P, T](func(ctx context.Context, s *transom.Session, p *P) (any, error) {
			return f(ctx, c.srv.cfg.Runtime, s, p)
		})(c, r)
	}
}

func success(any) any { return successResult{true} }

// permit changes the decisions of hosts and answers.
func permit(q *call, change func(*transom.Permissions)) {
	q.sess.Post(transom.Permit{Change: change}, q.answer(success))
}

type rulesSet struct {
	Approved []transom.Rule `json:"approved"`
	Denied   []transom.Rule `json:"denied"`
}

type configureParams struct {
	target
	ApproveAllTools *bool           `json:"approveAllToolPermissionRequests"`
	ApproveAllReads *bool           `json:"approveAllReadPermissionRequests"`
	Exclusions      json.RawMessage `json:"additionalContentExclusionPolicies"`
	Rules           *rulesSet       `json:"rules"`
	Paths           *struct {
		Unrestricted bool     `json:"unrestricted"`
		Additional   []string `json:"additionalDirectories"`
		IncludeTemp  *bool    `json:"includeTempDirectory"`
		Workspace    string   `json:"workspacePath"`
	} `json:"paths"`
	URLs *struct {
		Unrestricted bool     `json:"unrestricted"`
		Allowed      []string `json:"initialAllowed"`
	} `json:"urls"`
}

func configurePermissions(q *call, p *configureParams) {
	if !isEmpty(p.Exclusions) {
		q.Reply(nil, failKind(q.op(), transom.KindUnsupported, "content exclusion is not served: leave additionalContentExclusionPolicies out"))
		return
	}
	if p.Paths != nil {
		for _, dir := range append([]string{p.Paths.Workspace}, p.Paths.Additional...) {
			if dir != "" && !filepath.IsAbs(dir) {
				q.Reply(nil, invalid(q.op(), fmt.Sprintf("%s needs absolute directories, not %q", q.op(), dir)))
				return
			}
		}
	}
	change := func(now *transom.Permissions) {
		if p.ApproveAllReads != nil {
			now.Reads = *p.ApproveAllReads
		}
		if p.Rules != nil {
			now.Allow, now.Deny = ruleKeys(p.Rules.Approved), ruleKeys(p.Rules.Denied)
		}
		if w := p.Paths; w != nil {
			now.Paths = transom.Paths{Primary: w.Workspace, Extra: w.Additional, NoTemp: w.IncludeTemp != nil && !*w.IncludeTemp, Any: w.Unrestricted}
		}
		if p.URLs != nil {
			now.AnyURL, now.URLs = p.URLs.Unrestricted, p.URLs.Allowed
		}
	}
	q.sess.Post(transom.Permit{ApproveAll: p.ApproveAllTools, Change: change}, q.answer(success))
}

func ruleKeys(rules []transom.Rule) []string {
	out := make([]string, 0, len(rules))
	for _, r := range rules {
		out = append(out, r.Key())
	}
	return out
}

type modifyRulesParams struct {
	target
	Scope     string         `json:"scope"`
	Add       []transom.Rule `json:"add"`
	Remove    []transom.Rule `json:"remove"`
	RemoveAll bool           `json:"removeAll"`
}

// change adds and takes away keys.
func (p *modifyRulesParams) change(keys []string) []string {
	if p.RemoveAll {
		return nil
	}
	for _, k := range ruleKeys(p.Add) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	gone := ruleKeys(p.Remove)
	return slices.DeleteFunc(keys, func(k string) bool { return slices.Contains(gone, k) })
}

func modifyRules(q *call, p *modifyRulesParams) {
	for _, r := range append(slices.Clone(p.Add), p.Remove...) {
		if r.Kind == "" {
			q.Reply(nil, invalid(q.op(), q.op()+": a rule has no kind"))
			return
		}
	}
	switch p.Scope {
	case "session":
		permit(q, func(now *transom.Permissions) { now.Allow = p.change(now.Allow) })
	case "location":
		q.Go(func(context.Context) (any, error) {
			rt := q.c.srv.cfg.Runtime
			l, err := rt.Location(q.sess.Info().Dir)
			if err == nil {
				err = rt.ChangeLocation(l.Key, p.Add, p.Remove, p.RemoveAll)
			}
			if err != nil {
				return nil, fail(q.op(), err)
			}
			permit(q, func(now *transom.Permissions) { now.Located = p.change(now.Located) })
			return nil, nil
		})
	default:
		q.Reply(nil, invalid(q.op(), q.op()+" needs a scope: session or location"))
	}
}

type enabledParams struct {
	target
	Enabled  *bool `json:"enabled"`
	Required *bool `json:"required"`
}

func setApproveAll(q *call, p *enabledParams) {
	if p.Enabled == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs enabled, true or false"))
		return
	}
	q.sess.Post(transom.Permit{ApproveAll: p.Enabled}, q.answer(success))
}

type permissionModeResult struct {
	Success *bool  `json:"success,omitempty"`
	Mode    string `json:"mode"`
}

// modeOf is how calls are approved, in the protocol's words.
func modeOf(s *transom.Session) string {
	if _, all := s.Permissions(); all {
		return "allow-all"
	}
	return "manual"
}

func permissionMode(s *transom.Session, _ *target) (any, error) {
	return permissionModeResult{Mode: modeOf(s)}, nil
}

type permissionModeParams struct {
	target
	Mode string `json:"mode"`
}

func setPermissionMode(q *call, p *permissionModeParams) {
	all := p.Mode == "allow-all"
	switch p.Mode {
	case "manual", "allow-all":
	case "assisted":
		q.Reply(nil, failKind(q.op(), transom.KindUnsupported, "the permission mode assisted is not served: no model judges calls here; use manual or allow-all"))
		return
	default:
		q.Reply(nil, invalid(q.op(), q.op()+" needs a mode: manual or allow-all, not "+p.Mode))
		return
	}
	q.sess.Post(transom.Permit{ApproveAll: &all}, q.answer(func(any) any {
		ok := true
		return permissionModeResult{&ok, modeOf(q.sess)}
	}))
}

// setRequired says whether this client answers permission questions, whatever it
// said when it attached; false goes back to that.
func setRequired(q *call, p *enabledParams) {
	if p.Required == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs required, true or false"))
		return
	}
	q.sess.Post(q.sess.AnswersPermissions(*p.Required), q.answer(success))
}

type resetParams struct {
	target
	IncludeLocation *bool `json:"includeLocation"`
}

// resetApprovals takes back what was approved in this session; what is kept for
// its location stays there, to be applied again.
func resetApprovals(q *call, p *resetParams) {
	permit := transom.Permit{Forget: true}
	if p.IncludeLocation == nil || *p.IncludeLocation {
		permit.Change = func(now *transom.Permissions) { now.Located = nil }
	}
	q.sess.Post(permit, q.answer(success))
}

// promptShown is noted by nobody: there are no hooks about notifications.
func promptShown(q *call, _ *target) { q.Reply(successResult{true}, nil) }

func listPaths(s *transom.Session, _ *target) (any, error) {
	primary, all := s.Directories()
	return map[string]any{"primary": primary, "directories": all}, nil
}

// directory checks that a path names a directory.
func directory(op, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", invalid(op, fmt.Sprintf("%s needs an absolute path, not %q", op, path))
	}
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", invalid(op, op+": there is no directory "+path)
	}
	return path, nil
}

func addPath(q *call, p *pathParams) {
	dir, err := directory(q.op(), p.Path)
	if err != nil {
		q.Reply(nil, err)
		return
	}
	permit(q, func(now *transom.Permissions) {
		if !slices.Contains(now.Paths.Extra, dir) {
			now.Paths.Extra = append(now.Paths.Extra, dir)
		}
	})
}

func setPrimary(q *call, p *pathParams) {
	dir, err := directory(q.op(), p.Path)
	if err != nil {
		q.Reply(nil, err)
		return
	}
	permit(q, func(now *transom.Permissions) { now.Paths.Primary = dir })
}

func withinAllowed(s *transom.Session, p *pathParams) (any, error) {
	return map[string]any{"allowed": p.Path != "" && s.Within(p.Path, false)}, nil
}

func withinPrimary(s *transom.Session, p *pathParams) (any, error) {
	return map[string]any{"allowed": p.Path != "" && s.Within(p.Path, true)}, nil
}

func setAnyURL(q *call, p *enabledParams) {
	if p.Enabled == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs enabled, true or false"))
		return
	}
	permit(q, func(now *transom.Permissions) { now.AnyURL = *p.Enabled })
}

type locationResult struct {
	LocationKey  string `json:"locationKey"`
	LocationType string `json:"locationType"`
}

func wireLocation(l transom.Location) locationResult {
	if l.Repo {
		return locationResult{l.Key, "repo"}
	}
	return locationResult{l.Key, "dir"}
}

func resolveLocation(_ context.Context, rt *transom.Runtime, _ *transom.Session, p *directoryParams) (any, error) {
	l, err := rt.Location(p.WorkingDirectory)
	return wireLocation(l), err
}

type appliedResult struct {
	locationResult
	AppliedRules          []transom.Rule `json:"appliedRules"`
	AppliedRuleCount      int            `json:"appliedRuleCount"`
	AppliedDirectoryCount int            `json:"appliedDirectoryCount"`
	Changed               bool           `json:"changed"`
}

// applyLocation lets what is kept for a place hold in the session, in place of
// what was applied before.
func applyLocation(ctx context.Context, rt *transom.Runtime, s *transom.Session, p *directoryParams) (any, error) {
	l, err := rt.Location(p.WorkingDirectory)
	if err != nil {
		return nil, err
	}
	out := appliedResult{locationResult: wireLocation(l), AppliedRules: l.Rules, AppliedRuleCount: len(l.Rules)}
	if out.AppliedRules == nil {
		out.AppliedRules = []transom.Rule{}
	}
	err = s.Do(ctx, transom.Permit{Change: func(now *transom.Permissions) {
		keys := ruleKeys(l.Rules)
		out.Changed = !slices.Equal(keys, now.Located)
		now.Located = keys
		out.AppliedDirectoryCount = 0
		for _, dir := range l.Directories {
			if !slices.Contains(now.Paths.Extra, dir) {
				now.Paths.Extra = append(now.Paths.Extra, dir)
				out.AppliedDirectoryCount++
			}
		}
	}})
	return out, err
}

type approvalParams struct {
	target
	LocationKey string `json:"locationKey"`
	Approval    *struct {
		Kind     string   `json:"kind"`
		Commands []string `json:"commandIdentifiers"`
		Server   string   `json:"serverName"`
		Tool     *string  `json:"toolName"`
	} `json:"approval"`
}

// rules are what an approval says.
func (p *approvalParams) rules(op string) ([]transom.Rule, error) {
	a := p.Approval
	if p.LocationKey == "" || a == nil {
		return nil, invalid(op, op+" needs a locationKey and an approval")
	}
	var out []transom.Rule
	switch a.Kind {
	case "commands":
		for _, c := range a.Commands {
			out = append(out, transom.Rule{Kind: "shell", Argument: &c})
		}
	case "read", "write", "memory":
		out = []transom.Rule{{Kind: a.Kind}}
	case "custom-tool":
		out = []transom.Rule{{Kind: a.Kind, Argument: a.Tool}}
	case "mcp":
		if a.Server != "" {
			out = []transom.Rule{{Kind: a.Server, Argument: a.Tool}}
		}
	default:
		return nil, failKind(op, transom.KindUnsupported, "approvals of the kind "+a.Kind+" are not served")
	}
	if len(out) == 0 {
		return nil, invalid(op, op+": the approval names nothing")
	}
	return out, nil
}

func addToolApproval(ctx context.Context, rt *transom.Runtime, s *transom.Session, p *approvalParams) (any, error) {
	rules, err := p.rules("session.permissions.locations.addToolApproval")
	if err != nil {
		return nil, err
	}
	if err := rt.ChangeLocation(p.LocationKey, rules, nil, false); err != nil {
		return nil, err
	}
	m := modifyRulesParams{Add: rules}
	err = s.Do(ctx, transom.Permit{Change: func(now *transom.Permissions) { now.Located = m.change(now.Located) }})
	return successResult{true}, err
}

// keepForLocation keeps an approval that was given for a location, and then answers
// the request; false where there is none to keep. The session itself has it in its
// log already.
func (q *call) keepForLocation(decision json.RawMessage) bool {
	var d struct {
		Kind string `json:"kind"`
		approvalParams
	}
	if json.Unmarshal(decision, &d) != nil || d.Kind != "approve-for-location" {
		return false
	}
	rules, err := d.rules(q.op())
	if err != nil {
		return false // it names nothing that could be kept
	}
	q.Go(func(context.Context) (any, error) {
		err := q.c.srv.cfg.Runtime.ChangeLocation(d.LocationKey, rules, nil, false)
		return successResult{true}, fail(q.op(), err)
	})
	return true
}

func isTrusted(_ context.Context, rt *transom.Runtime, _ *transom.Session, p *pathParams) (any, error) {
	yes, err := rt.Trusted(p.Path)
	return map[string]any{"trusted": yes}, err
}

func addTrusted(_ context.Context, rt *transom.Runtime, _ *transom.Session, p *pathParams) (any, error) {
	dir, err := directory("session.permissions.folderTrust.addTrusted", p.Path)
	if err != nil {
		return nil, err
	}
	return successResult{true}, rt.Trust(dir)
}
