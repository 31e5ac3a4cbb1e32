package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

// The methods about the user: settings, accounts, secrets.
func userMethods() map[string]handler {
	return map[string]handler{
		"user.settings.get":    aside(getSettings),
		"user.settings.set":    aside(setSettings),
		"user.settings.reload": aside(reloadSettings),

		"account.login":          aside(signIn),
		"account.logout":         aside(signOut),
		"account.getCurrentAuth": aside(currentAuth),
		"account.getAllUsers":    aside(allUsers),
		"account.getQuota":       aside(getQuota),

		"session.gitHubAuth.setCredentials": waiting(setCredentials),

		"secrets.addFilterValues": plain(addSecrets),
		"tools.list":              aside(listTools),
	}
}

type settingResult struct {
	Value     any  `json:"value"`
	Default   any  `json:"default"`
	IsDefault bool `json:"isDefault"`
}

func getSettings(_ context.Context, c *conn, _ *noParams) (any, error) {
	all, err := c.srv.cfg.Runtime.Settings()
	out := map[string]settingResult{}
	for name, s := range all {
		out[name] = settingResult{s.Value, s.Default, !s.IsSet}
	}
	return map[string]any{"settings": out}, err
}

type settingsParams struct {
	Settings map[string]json.RawMessage `json:"settings"`
}

// setSettings shadows nothing: there is one file of settings.
func setSettings(_ context.Context, c *conn, p *settingsParams) (any, error) {
	return map[string]any{"shadowedKeys": []string{}}, c.srv.cfg.Runtime.ChangeSettings(p.Settings)
}

func reloadSettings(_ context.Context, c *conn, _ *noParams) (any, error) {
	c.srv.cfg.Runtime.ReloadSettings()
	return nil, nil
}

type loginParams struct {
	Host  string `json:"host"`
	Login string `json:"login"`
	Token string `json:"token"`
}

// signIn keeps the token in memory only: there is no vault.
func signIn(ctx context.Context, c *conn, p *loginParams) (any, error) {
	if p.Token == "" {
		return nil, invalid("account.login", "account.login needs a token")
	}
	_, err := c.srv.cfg.Runtime.SignIn(ctx, transom.Login{Host: p.Host, Login: p.Login, Token: p.Token})
	return map[string]any{"storedInVault": false}, err
}

type authInfo struct {
	Type  string `json:"type"`
	Host  string `json:"host"`
	Login string `json:"login,omitempty"`
}

type logoutParams struct {
	AuthInfo    *authInfo `json:"authInfo"`
	SelectionID string    `json:"selectionId"`
}

func signOut(_ context.Context, c *conn, p *logoutParams) (any, error) {
	who := value(p.AuthInfo)
	if p.SelectionID != "" {
		for _, l := range c.srv.cfg.Runtime.SignedIn() {
			if selectionID(l) == p.SelectionID {
				who = authInfo{"user", l.Host, l.Login}
			}
		}
	}
	if who.Login == "" {
		return nil, invalid("account.logout", "account.logout needs the authInfo of an account that is signed in")
	}
	more, err := c.srv.cfg.Runtime.SignOut(who.Host, who.Login)
	return map[string]any{"hasMoreUsers": more}, err
}

func selectionID(l transom.Login) string { return l.Host + "/" + l.Login }

type currentAuthResult struct {
	AuthInfo   *authInfo `json:"authInfo,omitempty"`
	AuthErrors []string  `json:"authErrors,omitempty"`
}

// currentAuth says whose account sessions use that bring none.
func currentAuth(ctx context.Context, c *conn, _ *noParams) (any, error) {
	if all := c.srv.cfg.Runtime.SignedIn(); len(all) > 0 {
		l := all[len(all)-1]
		return currentAuthResult{AuthInfo: &authInfo{"user", l.Host, l.Login}}, nil
	}
	a := c.srv.cfg.Runtime.Account(ctx)
	if !a.Authenticated || a.Login == "" {
		return currentAuthResult{}, nil
	}
	return currentAuthResult{AuthInfo: &authInfo{a.Type, a.Host, a.Login}}, nil
}

type userEntry struct {
	AuthInfo    authInfo `json:"authInfo"`
	SelectionID string   `json:"selectionId"`
	Token       string   `json:"token"`
}

// allUsers lists the accounts that clients signed in here, tokens included, as the
// protocol has it.
func allUsers(_ context.Context, c *conn, _ *noParams) (any, error) {
	out := []userEntry{}
	for _, l := range c.srv.cfg.Runtime.SignedIn() {
		out = append(out, userEntry{authInfo{"user", l.Host, l.Login}, selectionID(l), l.Token})
	}
	return out, nil
}

type quotaParams struct {
	GitHubToken string `json:"gitHubToken"`
	SelectionID string `json:"selectionId"`
}

type quotaResult struct {
	EntitlementRequests              int64   `json:"entitlementRequests"`
	IsUnlimitedEntitlement           bool    `json:"isUnlimitedEntitlement"`
	UsedRequests                     int64   `json:"usedRequests"`
	RemainingPercentage              float64 `json:"remainingPercentage"`
	Overage                          float64 `json:"overage"`
	OverageAllowedWithExhaustedQuota bool    `json:"overageAllowedWithExhaustedQuota"`
	UsageAllowedWithExhaustedQuota   bool    `json:"usageAllowedWithExhaustedQuota"`
	ResetDate                        string  `json:"resetDate,omitempty"`
}

func getQuota(ctx context.Context, c *conn, p *quotaParams) (any, error) {
	token := p.GitHubToken
	if p.SelectionID != "" {
		for _, l := range c.srv.cfg.Runtime.SignedIn() {
			if selectionID(l) == p.SelectionID {
				token = l.Token
			}
		}
		if token == "" {
			return nil, failKind("account.getQuota", transom.KindNotFound, "no account that is signed in has the selectionId "+p.SelectionID)
		}
	}
	quotas, err := c.srv.cfg.Runtime.Quotas(ctx, token)
	if err != nil {
		return nil, err
	}
	out := map[string]quotaResult{}
	for kind, q := range quotas {
		out[kind] = quotaResult{q.Entitlement, q.Unlimited, q.Used, q.RemainingPercent, q.Overage, q.OverageAllowed, q.Unlimited || q.OverageAllowed, q.Reset}
	}
	return map[string]any{"quotaSnapshots": out}, nil
}

type credentialsParams struct {
	target
	Credentials *struct {
		Type        string `json:"type"`
		Host        string `json:"host"`
		Login       string `json:"login"`
		Token       string `json:"token"`
		CopilotUser *struct {
			Login string `json:"login"`
			Plan  string `json:"copilot_plan"`
		} `json:"copilotUser"`
	} `json:"credentials"`
}

type credentialsResult struct {
	Success             bool  `json:"success"`
	CopilotUserResolved *bool `json:"copilotUserResolved,omitempty"`
}

func setCredentials(ctx context.Context, s *transom.Session, p *credentialsParams) (any, error) {
	w := p.Credentials
	if w == nil {
		return credentialsResult{Success: true}, nil
	}
	c := transom.Credentials{Type: w.Type, Host: w.Host, Login: w.Login, Token: w.Token}
	if u := w.CopilotUser; u != nil {
		c.Plan = u.Plan
		if c.Login == "" {
			c.Login = u.Login
		}
	}
	resolved, err := s.SetCredentials(ctx, c)
	return credentialsResult{true, &resolved}, err
}

type secretsParams struct {
	Values []string `json:"values"`
}

func addSecrets(c *conn, p *secretsParams) (any, error) {
	c.srv.cfg.Runtime.AddSecrets(p.Values...)
	return map[string]any{"ok": true}, nil
}

type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// listTools lists Transom's own tools; they are the same for all models.
func listTools(_ context.Context, c *conn, _ *noParams) (any, error) {
	tools, err := c.srv.cfg.Runtime.BuiltInTools()
	list := []listedTool{}
	for _, t := range tools {
		list = append(list, listedTool{t.Name, t.Description, t.Parameters})
	}
	return map[string]any{"tools": list}, err
}
