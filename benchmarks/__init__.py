"""Speed measurements. `make test` runs none of them: its machines are too busy to time anything."""
