"""Reports and what is read in them: sections, sentences, records, observations, words of change."""
