"""The explorer: a cohort's studies, their drafts, the pick and why, as one page.

    queries ─▶ studies (`studies`) ─▶ JSON (`export`) ─▶ served by `tabon.service`, or one file (`export`)

The page itself is in `page/`; it has no build step and asks no other host.
"""
