"""The HTTP server and its page."""

from condsim.errors import requires_extra

with requires_extra("serve"):
    from condsim.serving.app import create_app
    from condsim.serving.middleware import ServingSettings

__all__ = ["ServingSettings", "create_app"]
