"""Speed of untemplate next to the parsers of other projects. README.md in this folder explains how."""
