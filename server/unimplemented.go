package server

import (
	"fmt"
	"sort"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// Why a method of the protocol is not served, in words for the host's developer.
const (
	reasonAccount    = "signing in and out and account data are not served; give a token by gitHubToken, --auth-token-env or GITHUB_TOKEN"
	reasonAutopilot  = "the autopilot's objective is not served yet"
	reasonCanvas     = "a client that shows canvases declares them with session.create and session.resume"
	reasonCommands   = "commands here leave nothing for the client to finish"
	reasonDebug      = "collecting logs is not served; the session's log is events.jsonl in its workspace directory"
	reasonExtensions = "extensions belong to a session here (requestExtensions): see session.extensions.list"
	reasonFactory    = "factories have no sub-agents yet, and the model starts none; see session.factory.run"
	reasonInterrupt  = "use session.abort"
	reasonManaged    = "managed settings and content exclusion are not served"
	reasonMCP        = "a client, transport or configuration that lives in the host's process does not cross this protocol; give servers by mcpServers, mcp.config.add or session.mcp.startServer, and end them by session.mcp.stopServer"
	reasonMCPPlan    = "there is no catalog to plan an installation from; give the server's configuration by mcp.config.add"
	reasonModel      = "use session.model.switchTo and models.list"
	reasonModels     = "there is no built-in catalog; use models.list"
	reasonPlugins    = "there is no catalog to search and no plugin inside of Transom; plugins are installed from directories, see plugins.install"
	reasonQueue      = "the queue drains by itself; session.queue.pendingItems reads it"
	reasonSandbox    = "sandboxes are not served yet"
	reasonSend       = "use session.send"
	reasonSessions   = "use session.resume, session.getMessages and session.delete"
	reasonSpawn      = "starting further runtimes from here is not enabled: start another server, and give it to this one as a peer"
	reasonTasks      = "only sub-agents are tasks here; hosts do not register work of their own"
	reasonTools      = "tools are declared with session.create and session.resume, and run by the model"
	reasonUsage      = "usage is not predicted; session.usage.getMetrics counts it"
	reasonWorkspace  = "summaries and objectives are not kept as workspace files; session.name.set names a session"
)

// refusal is a method of the published protocol that is not served.
type refusal struct{ method, reason string }

// refusals is sorted by method.
var refusals = []refusal{
	{"agentRegistry.spawn", reasonSpawn},
	{"catalog.search", reasonPlugins},
	{"extensions.disable", reasonExtensions},
	{"extensions.discover", reasonExtensions},
	{"extensions.enable", reasonExtensions},
	{"managedSettings.clearCache", reasonManaged},
	{"managedSettings.read", reasonManaged},
	{"mcp.planInstall", reasonMCPPlan},
	{"models.getBuiltInCatalog", reasonModels},
	{"plugins.builtin.set", reasonPlugins},
	{"registerExtensionLaunchProvider", reasonExtensions},
	{"session.autopilotObjective.getState", reasonAutopilot},
	{"session.canvas.provider.register", reasonCanvas},
	{"session.canvas.provider.unregister", reasonCanvas},
	{"session.commands.finalizeInvocationEffect", reasonCommands},
	{"session.contentExclusion.checkPaths", reasonManaged},
	{"session.debug.collectLogs", reasonDebug},
	{"session.extensions.sendAttachmentsToMessage", reasonExtensions},
	{"session.factory.agent", reasonFactory},
	{"session.factory.resumeFromTool", reasonFactory},
	{"session.factory.runFromTool", reasonFactory},
	{"session.gitHubAuth.getAllAuthAvailable", reasonAccount},
	{"session.gitHubAuth.getCurrentAuthInfo", reasonAccount},
	{"session.gitHubAuth.lastAuthErrors", reasonAccount},
	{"session.gitHubAuth.login", reasonAccount},
	{"session.gitHubAuth.logout", reasonAccount},
	{"session.gitHubAuth.logoutUser", reasonAccount},
	{"session.gitHubAuth.refreshCopilotUser", reasonAccount},
	{"session.gitHubAuth.switchToAuth", reasonAccount},
	{"session.interruptMainTurn", reasonInterrupt},
	{"session.limitPrediction.predict", reasonUsage},
	{"session.mcp.registerExternalClient", reasonMCP},
	{"session.mcp.reloadWithConfig", reasonMCP},
	{"session.mcp.unregisterExternalClient", reasonMCP},
	{"session.model.applyStartupOverlay", reasonModel},
	{"session.model.setAllowedModels", reasonModel},
	{"session.model.switchAutoTier", reasonModel},
	{"session.queue.beginDeferredIdleDrain", reasonQueue},
	{"session.queue.consumeSystemNotifications", reasonQueue},
	{"session.queue.deferSessionIdle", reasonQueue},
	{"session.queue.enqueueResumePending", reasonQueue},
	{"session.queue.finishDeferredIdleDrain", reasonQueue},
	{"session.queue.hasPending", reasonQueue},
	{"session.queue.process", reasonQueue},
	{"session.queue.snapshot", reasonQueue},
	{"session.sandbox.disableForSession", reasonSandbox},
	{"session.sandbox.getEnforcementStatus", reasonSandbox},
	{"session.sendMessages", reasonSend},
	{"session.sendSystemNotification", reasonSend},
	{"session.settings.evaluatePredicate", reasonManaged},
	{"session.settings.snapshot", reasonManaged},
	{"session.tasks.register", reasonTasks},
	{"session.tasks.update", reasonTasks},
	{"session.tools.execute", reasonTools},
	{"session.tools.getBuiltinDescriptors", reasonTools},
	{"session.tools.set", reasonTools},
	{"session.tools.taskCompleteEventData", reasonTools},
	{"session.workspaces.addSummary", reasonWorkspace},
	{"session.workspaces.autopilotObjectiveExists", reasonWorkspace},
	{"session.workspaces.deleteAutopilotObjective", reasonWorkspace},
	{"session.workspaces.readAutopilotObjective", reasonWorkspace},
	{"session.workspaces.truncateSummaries", reasonWorkspace},
	{"session.workspaces.updateMetadata", reasonWorkspace},
	{"session.workspaces.writeAutopilotObjective", reasonWorkspace},
	{"sessions.configureSessionExtensions", reasonSessions},
	{"sessions.delete", reasonSessions},
	{"sessions.getBoardEntryCount", reasonSessions},
	{"sessions.registerExtensionToolsOnSession", reasonSessions},
}

// refuse is the answer to a method that is not served.
func refuse(name string) error {
	i := sort.Search(len(refusals), func(i int) bool { return refusals[i].method >= name })
	if i < len(refusals) && refusals[i].method == name {
		return failKind(name, transom.KindUnsupported, fmt.Sprintf("%s is not served by Transom: %s", name, refusals[i].reason))
	}
	return jsonrpc2.MethodNotFound(name)
}
