"""Distances between whole reports as sets of sentences."""
