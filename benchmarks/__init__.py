"""Speed measurements. Nothing here runs in `make test`, where machines are too busy to time anything."""
