"""The engines that structgen plugs into, a module each. None is imported before it is asked for, nor is its engine.

Read `settings` first, an operator's; `engines`, how each asks for definitions; `requests`, which reads requests and
keeps their indexes; `matcher`, one request's guide. `engine_names` has what adapters use of engines' insides.
"""
