"""`JsonEvents`: what a JSON text has come to while it is generated.

Comes in: bytes. Goes out: events with paths and values (RFC 8259).

Read `events`, `json_event`, `json_states`.
"""
