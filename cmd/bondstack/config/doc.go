// Package config is the configuration file of bondstack run: its Go types, what
// reads and writes them as YAML, what finds the faults of a file, and its JSON
// schema.
//
//	f, faults := config.Read(text, checks)
//	text, err := config.Marshal(f)
//
// Read is Parse, which finds faults of form, such as keys, types and ranges, and
// then Check, which finds those of meaning by the bond's and the stack's own checks.
// The types in types.go are the one description of the file: reading, the schema
// and the checks of form follow their tags. Options of the bond are described by
// package bonding's table.
//
// A file is YAML of at most 1 MiB, without anchors, aliases, tags and directives.
// Unknown keys are faults. All faults are found at once, each with its line and
// column; of faults in the YAML itself only the first is.
package config
