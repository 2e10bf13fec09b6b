"""The on-disk cache of compiled indexes and vocabularies; docs/guide/cache.md tells how it works."""
