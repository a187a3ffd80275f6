"""tabon inside other frameworks: rewards for trainers, selection on a cluster."""
