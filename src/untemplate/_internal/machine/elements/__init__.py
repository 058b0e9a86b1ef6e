"""Arguments in elements named after them: ``<city>Paris</city>``."""
