"""llama.cpp's real server with a model that writes given outputs, byte by byte.

* The model has the architecture gpt2, whose tokens get a vector for their position in the context. The vector of a
  position is the code of the byte that is written there; every other weight is zero. So the model writes the same
  byte at a position whatever was written before.
* Its tokens are the 256 bytes and an end. The server cuts, samples, constrains and parses as for any model: its chat
  template, its lazy grammar and its parser are the real ones. Where its grammar forbids the byte, it writes another
  one.
* All outputs are in one model, one after the other. The text of the first message of a user is filled up until the
  prompt ends where the wanted output begins.

It needs the packages ``xllamacpp``, ``gguf`` and ``numpy``. A process has one playback: the threads of a server may
outlive it, and llama.cpp ends the process on some templates.
"""

from __future__ import annotations

from .model import END, write_playback
from .server import Answer, Playback

__all__ = ["END", "Answer", "Playback", "write_playback"]
