"""A reader study: people compare, rate or rank drafts without knowing who chose them.

    queries, picks ─▶ assignment ─▶ folder (cases for each reader, the key apart) ─▶ answers ─▶ results

What a reader is sent holds no id of a query, no selector, no number of a draft and no distance; the key that
leads back is a file that the service never opens.
"""
