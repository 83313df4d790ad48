"""Everything that knows the whole system: config, command line, program, supervisor."""

from launch import courier_stand_in

# Here, because Launchpad is imported in several modules below and must find it.
courier_stand_in.install_where_needed()
