"""Benchmarks that compare structgen with its peers; not part of the installed package."""
