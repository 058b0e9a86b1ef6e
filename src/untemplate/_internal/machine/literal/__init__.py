"""Arguments as literals of Python, or of Gemma 4's notation: ``(city='Paris')``."""
