"""The gateway on Ray Serve: replicas on a cluster that start and stop with the load.

A replica is the whole gateway. Ray Serve routes requests to replicas, passes streams on chunk by chunk, restarts
replicas that fail, and changes their number with the running requests.

Source: Ray Serve's ``serve.ingress`` for ASGI applications.
"""

from __future__ import annotations

from typing import Any

from untemplate.integrations._partner import partner

from .deferred import DeferredGateway
from .settings import Settings


def application(settings: Settings, **options: Any) -> Any:
    """Return a Ray Serve application, for ``serve.run`` or a Serve config file.

    Args:
        settings: of the gateway. Its address, keys of TLS and workers are Ray Serve's affair.
        options: of the deployment, as ``serve.deployment`` takes them: ``num_replicas``, ``autoscaling_config``,
            ``max_ongoing_requests``, ``ray_actor_options``. By default a replica takes as many requests as the settings
            allow at once.

    Raises:
        ImportError: Ray Serve is missing or too old; the message names the version.
        ValueError: the settings ask for several workers.
    """
    serve = partner("ray.serve", "ray", "2.40")
    if settings.workers > 1:
        raise ValueError("workers: Ray Serve has replicas instead: num_replicas, or autoscaling_config")
    options.setdefault("max_ongoing_requests", settings.max_concurrent_requests or 1024)
    gateway = DeferredGateway(settings)

    @serve.ingress(gateway)
    class Gateway:
        """One replica."""

    return serve.deployment(name="untemplate", **options)(Gateway).bind()
