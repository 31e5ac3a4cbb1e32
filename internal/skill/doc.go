// Package skill reads skills: directories with a file SKILL.md, whose text tells
// the model how to go about one kind of task.
//
//	skills/review/SKILL.md ─ Scan ─▶ Catalog: names and descriptions ─▶ the tool "skill" lists them
//	                                     │
//	                     Read (on use) ──┴──▶ tool.Skill: the text
//
// What a session costs before a skill is used is its name and description. The
// text is read when it is used, and nothing of it is kept here.
//
// # Ownership
//
// A [Catalog] is an immutable snapshot; whoever changes something makes a new one.
// No file stays open. A skill that belongs to a project is read inside of that
// project only: a link in it that leads elsewhere is not followed, since the
// contents of a repository must not decide which files of the machine are read.
//
// # Ordering
//
// Places are scanned in the order in which they are given, the skills of one place
// by name. Of two skills with the same name the first counts.
//
// # Errors
//
// A skill that cannot be read is left out, and one that is odd is taken as far as
// it goes; both are told in [Catalog.Errors] and [Catalog.Warnings]. A place that
// is not there has no skills.
package skill
