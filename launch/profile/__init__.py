"""`vantage profile`: what stages and whole runs cost, and which of them is the bottleneck."""
