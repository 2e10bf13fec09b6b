"""From definitions to the tables that the runtime follows; docs/design.md tells how the parts fit together."""
