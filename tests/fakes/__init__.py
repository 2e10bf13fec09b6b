"""Stand-ins for engines and models that are not installed."""
