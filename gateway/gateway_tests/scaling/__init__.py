"""Gateways on several machines: Redis, Ray Serve, traces. `make test-scaling` installs the packages."""
