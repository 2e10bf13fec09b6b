"""JSON Schemas: reading and normalising them, and lowering them to pushdown programs."""
