"""The inside of the library: nothing here is for users, and any release may change it."""
