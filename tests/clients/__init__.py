"""Real clients at pinned versions, each through a tool loop to its answer (``make test-clients``)."""
