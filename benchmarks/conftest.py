"""Benchmarks are run by hand (`make bench`): the machines that run the tests are too noisy to time anything."""
