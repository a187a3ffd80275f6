"""Drafts from any model, under the paper's prompts, bought once and kept."""
