"""The gateway: an HTTP server that speaks four APIs and generates with any engine.

    request ─protocols─▶ Generation ─prompt─▶ Job ─engine─▶ EngineChunks ─session─▶ deltas ─protocols─▶ response

Rules of this package:

* Parsing state belongs to one request. Objects that requests share (a model's parser, template and engine) are
  immutable, or safe for concurrent use.
* ``protocols`` is pure: it turns dicts into bytes and dicts. ``engines`` knows no API dialect, and ``protocols``
  knows no engine.
* The library never imports this package. Its dependencies are installed by the extra ``serve``.
"""
