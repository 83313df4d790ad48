"""Reading what runs wrote: metrics files and learning curves."""
