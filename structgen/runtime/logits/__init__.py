"""Masks onto logits: NumPy, torch on any device, MLX.

Comes in: masks and logits. Goes out: logits with forbidden ids at minus infinity, or a sampled id.

Read `masks`, `devices` (rows that stay on a device), `device_automata` (states that stay there),
`triton_masks`, `sampling`.
"""
