// Package oauth logs in to MCP servers, by the official Go SDK, and keeps what came
// of it.
//
//	Login ──▶ metadata of the server, of its issuer ──▶ a client ──▶ page, for the browser
//	                                                                   │ 127.0.0.1: code, state, issuer
//	Token ◀── vault ◀────────────────── tokens ◀── code and verifier ──┘
//	  │ about to end, or refused
//	  └─▶ Renew: one at a time for each server, wherever the vault is shared
//
// Discovery (RFC 9728, RFC 8414), registration (RFC 7591), PKCE, the check of state
// and issuer (RFC 9207) are the SDK's. Here is what an application has to add: who
// waits for the browser and how long, where tokens are kept, when they are renewed,
// and what of all this a person may read.
//
// # Ownership
//
// A [Keeper] belongs to one host of servers and ends with it: logins under way are
// given up, their listeners closed. The vault may be shared.
//
// A token is kept for one address and one client, and asked for with that address
// as its resource (RFC 8707). Requests of a login follow no redirect to another
// origin. Where the server is on the public network, they do not go to private
// addresses of this one.
//
// # Ordering
//
// A token that is refreshed is in the vault before it is used, so that a refresh
// token that is good for one use is never used twice.
//
// # Errors
//
// [ErrNone] says that nothing is kept that a token could be made of. Every other
// error says which step failed and what to do, and holds nothing of what was sent.
package oauth
