"""Benchmarks are run by hand (`make bench`): machines that run the tests are too noisy to time anything."""
