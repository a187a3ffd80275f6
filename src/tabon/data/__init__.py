"""Where reports come from: cohorts of data sets on disk, simulated patients, clinical file formats."""
