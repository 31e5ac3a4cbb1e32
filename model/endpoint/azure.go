package endpoint

import (
	"net/url"
	"strings"
)

// Azure is what an Azure OpenAI resource needs to know besides its address. Its
// BaseURL is the resource, such as https://my-resource.openai.azure.com; what
// stands behind /openai in it is not needed.
//
//	APIVersion set, chat completions   /openai/deployments/MODEL/chat/completions?api-version=V
//	APIVersion set, responses          /openai/responses?api-version=V
//	APIVersion empty                   /openai/v1/chat/completions, /openai/v1/responses
//
// MODEL is the name on the wire: Azure calls it a deployment. A key is sent as
// api-key, a bearer token (of Entra ID) as Authorization.
type Azure struct {
	APIVersion string
}

// azureKeyHeader is where Azure wants a key.
const azureKeyHeader = "api-key"

// openAzure sets the addresses of a resource.
func (e *Endpoint) openAzure() {
	e.wire.KeyHeader = azureKeyHeader
	base := e.base
	if i := strings.Index(base.Path+"/", "/openai/"); i >= 0 {
		// A deployment in the base URL counts, unless the model's name is given.
		rest := strings.Split(strings.Trim(base.Path[i:], "/"), "/")
		if len(rest) > 2 && rest[1] == "deployments" && e.cfg.WireModel == "" {
			e.cfg.WireModel = rest[2]
		}
		base.Path = base.Path[:i]
	}
	base.Path = strings.TrimRight(base.Path, "/")
	version := e.cfg.Azure.APIVersion
	q := base.Query()
	q.Del("api-version")
	if version != "" {
		q.Set("api-version", version)
	}
	base.RawQuery = q.Encode()
	switch {
	case version == "":
		e.plain = addressOf(base, "openai/v1/"+e.wire.Path)
		e.models = base.JoinPath("openai/v1/models").String()
	case e.wire.Path == "responses":
		e.plain = addressOf(base, "openai/responses")
		fallthrough
	default:
		e.models = base.JoinPath("openai/models").String()
	}
}

// deployment is the address of a deployment: the versioned route has the model's
// name in its path.
func (e *Endpoint) deployment(model string) address {
	if e.cfg.WireModel != "" {
		model = e.cfg.WireModel
	}
	return addressOf(e.base, "openai/deployments/"+url.PathEscape(model)+"/"+e.wire.Path)
}
