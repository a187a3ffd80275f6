"""Models that write drafts: paid services, servers, local models, a command of your own."""
