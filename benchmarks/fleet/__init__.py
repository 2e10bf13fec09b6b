"""Many definitions, many tokenizers, one cache: `warm` measures `structgen.warm`, `model` says how far it scales."""
