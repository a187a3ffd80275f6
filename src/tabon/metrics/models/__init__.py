"""Neural networks that metrics need, and the check of their weights."""
