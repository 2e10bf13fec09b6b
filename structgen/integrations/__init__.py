"""The engines that structgen plugs into, a module each. None is imported before it is asked for, nor is its engine.

`structgen.integrations.matcher` and `structgen.integrations.requests` are what they have in common, and
`structgen.integrations.engine_names` has what they use of engines' insides.
"""
