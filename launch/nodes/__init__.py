"""What each node of the program runs: config in, components wired to Reverb, a loop."""
