"""One module of data per model family."""
