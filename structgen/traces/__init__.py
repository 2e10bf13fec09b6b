"""Traces: what constraining did to a text, step by step.

Comes in: a guide, a batch, or transformers' scores, recorded on request by classes of their own; what is not recorded
runs as before. Goes out: a `Trace`, a frozen value that JSON keeps, and pages and terminals show.

Read `steps` and `trace`, `recorder` (the one list of steps), then who feeds it: `guide`, `batch`,
and `structgen.integrations.transformers` (`tracing`, `traced_generate`, `traced_batching`); `display` makes pages
and Rich texts.
"""
