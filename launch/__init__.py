"""Everything that knows the whole system: config, command line, program, supervisor."""
