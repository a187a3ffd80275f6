"""From one's own tables of visits and drafts to a cohort and its queries."""
