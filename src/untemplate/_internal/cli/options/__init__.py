"""The options of each command, and its help. A module is imported when its command is the one to run."""
