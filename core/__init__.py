"""Measure why it matters where a Transformer puts its normalization."""
