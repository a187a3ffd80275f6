"""Drafts from any model, under the paper's prompts, generated once and kept."""
