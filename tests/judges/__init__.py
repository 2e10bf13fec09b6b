"""Outside judges, and slow implementations of our own: what masks and languages are compared with."""
