"""The gateway behind reverse proxies. `make test-edge` fetches nginx and HAProxy."""
