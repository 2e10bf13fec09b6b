"""Many definitions into one cache, ahead of time, on whatever runs functions.

Comes in: definitions, vocabularies, a cache, and a `concurrent.futures.Executor`. Goes out: what the cache lacked is
in it, and a `Report` says of each definition and vocabulary what became of it.

Read `values` and `options` first, then `plan` (what there is to do, in which order), `worker` (one definition, in
another process or in this one; `watch` ends one that hangs, `pipeline` has a store asked and written meanwhile),
`lanes` (where work runs, and what an executor that breaks is replaced by), and `warm`, which brings them together.
"""
