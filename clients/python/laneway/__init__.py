# SPDX-License-Identifier: Apache-2.0
"""Handlers for Laneway.

    import laneway

    app = laneway.App()

    @app.handler("confirm-order")
    def confirm(message):
        order = message.json()
        if "id" not in order:
            raise laneway.Dead("bad order: no id")
        return {"confirmed": order["id"]}

    app.run()

A handler's return value is its reply; what it raises is its verdict. README.md says the rest.
"""
from ._app import App
from ._message import Headers, Message
from ._verdicts import NULL, Dead, Drop, Error, Retry, Verdict

__all__ = [
    "NULL",
    "App",
    "Dead",
    "Drop",
    "Error",
    "Headers",
    "Message",
    "Retry",
    "Verdict",
    "__version__",
]
__version__ = "0.1.0"
