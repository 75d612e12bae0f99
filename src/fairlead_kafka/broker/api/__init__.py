"""Handlers: one file per API, named by its key, or `private_…` if only brokers send the request.
Importing this package fills the tables of `dispatch`; each file's docstring says which versions it
serves and what it refuses."""

import importlib
import pkgutil

for _module in sorted(
    module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith(("k", "private"))
):
    importlib.import_module(f"{__name__}.{_module}")
