"""Other projects' parsers as programs for `untemplate conform`, and the page that shows their results."""
