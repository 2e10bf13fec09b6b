"""An object store behind the cache's folder: what builders compiled, for servers that come and go.

In comes an `ObjectStore`, which says where it is and how to use it; a `Cache` asks the `Remote` made of it for what
its folder lacks, and hands it what was put. Out come values whose digest, and signature where keys are given, are
right.

Read `values` (what users give), `objects` (the bytes of an object), `signatures` (Ed25519), `bucket` (obstore),
`calls` and `breaker` (how long anybody waits, and how often anybody asks), then `remote`, which brings them together,
and `upkeep`, behind ``structgen cache push`` and its like. docs/guide/fleet.md is for users; docs/internals/stores.md
says why obstore.
"""
