from .application import create_app as create_app, serve as serve
from .settings import (
    ServingSettings as ServingSettings,
    check_address as check_address,
    read_keys as read_keys,
)
