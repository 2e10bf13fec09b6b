"""The engines that structgen plugs into, a module each. None is imported before it is asked for, nor is its engine.

`structgen.integrations.matcher` and `structgen.integrations.requests` are what they have in common.
"""
