"""Masks onto logits, on NumPy, CPU, CUDA and MPS.

Comes in: masks and logits. Goes out: logits with forbidden ids at minus infinity, or a sampled id.

Read `logits`, `array_logits`, `devices` (rows that stay on a device), `device_automata` (states that stay there),
`triton_masks`, `sampling`.
"""
