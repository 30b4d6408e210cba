# The extension; the classes for people are in __init__.pyi.
from typing import Any

def __getattr__(name: str) -> Any: ...
