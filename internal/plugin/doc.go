// Package plugin reads plugins and marketplaces from directories.
//
//	review-pack/                    a plugin
//	  plugin.json                   its name, version, description
//	  SKILL.md, skills/NAME/SKILL.md
//	  .mcp.json                     MCP servers
//	  agents/NAME.md                agents
//	  hooks.json
//
//	packs/                          a marketplace
//	  marketplace.json              its name, and where its plugins lie
//	  review-pack/ …
//
// A plugin without a manifest is named after its directory. Nothing is copied and
// nothing fetched: a plugin is what stands in its directory when it is read.
//
// # Ownership
//
// Everything is a value; no file stays open. What a manifest names is read inside
// of the plugin's, or the marketplace's, own directory, and links are not followed
// out of it.
//
// # Errors
//
// A directory that is no plugin or no marketplace is an error that says what is
// missing. A part that is damaged is left out of the plugin, and told in
// [Plugin.Problems].
package plugin
