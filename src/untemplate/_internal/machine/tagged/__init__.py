"""Arguments in tags: ``<parameter=city>Paris</parameter>``."""
