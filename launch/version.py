"""The version of Vantage: here, and nowhere else (pyproject.toml reads it from this file)."""

VERSION = "0.1.0"
