"""The gateway: any engine in front, four API dialects behind.

    request ─protocols─▶ Generation ─prompt─▶ Job ─engine─▶ EngineChunks ─session─▶ deltas ─protocols─▶ response

Rules of this package:

* Parsing state belongs to a request. What is shared between requests (a model's parser, its template, its engine) is
  immutable, or its own guard.
* ``protocols`` is pure: dicts in, bytes and dicts out. ``engines`` knows no API dialect, ``protocols`` no engine.
* Nothing here is imported by the library; what it needs comes with the extra ``serve``.
"""
