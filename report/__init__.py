"""Reading what runs wrote: metrics files, learning curves, and the report on many runs."""
