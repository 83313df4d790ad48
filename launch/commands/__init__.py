"""The commands of `vantage`, a file or folder each; `suite` and `profile` have their own rooms."""
