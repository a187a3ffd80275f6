"""The page of a reader study: served, or as one file without a network.

The routes answer from the study's public part and the journal; they never open the key.
"""
