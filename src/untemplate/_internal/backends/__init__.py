"""Between an ``OutputParser`` and the machine: a Format run over one output, and the interface for other parsers."""
