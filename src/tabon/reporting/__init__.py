"""What people look at: tables, plots, the report page, and the experiment that makes them all."""
